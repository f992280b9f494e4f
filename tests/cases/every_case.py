"""Every counter's case, of all vocabularies."""

from cases.cases_lsu_exclusions import APART
from cases.cases_ncu import NCU
from cases.cases_nvprof import NVPROF
from cases.cases_place import PLACE
from cases.cases_plain import PLAIN
from cases.counter_cases import CASES as SPECIAL

CASES = (*SPECIAL, *PLAIN, *PLACE, *NVPROF, *NCU, *APART)
