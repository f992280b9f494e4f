"""Every counter's case, of all vocabularies."""

from cases_apart import APART
from cases_ncu import NCU
from cases_nvprof import NVPROF
from cases_place import PLACE
from cases_plain import PLAIN
from counter_cases import CASES as SPECIAL

CASES = (*SPECIAL, *PLAIN, *PLACE, *NVPROF, *NCU, *APART)
