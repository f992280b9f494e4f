"""Every counter's case, of all vocabularies."""

from cases.cases_host import HOST
from cases.cases_lsu_exclusions import APART
from cases.cases_ncu import NCU
from cases.cases_nvprof import NVPROF
from cases.cases_place import PLACE
from cases.cases_plain import PLAIN
from cases.counter_cases import CASES as SPECIAL

from cutrace.analyzer.counting.vocabulary import vocabularies

CASES = (*SPECIAL, *PLAIN, *PLACE, *NVPROF, *NCU, *APART, *HOST)
ESTIMATED = {
    *("estimated_time", "gpu__time_duration.sum"),
    *(
        f"{unit}throughput.avg.pct_of_peak_sustained_elapsed"
        for unit in ("sm__", "l1tex__", "lts__", "dram__", "gpu__dram_")
    ),
}
"""Counters without a closed form: tests/unit/analyzer/test_analyzer_time.py works some out."""
PIPES = {c.name for v in vocabularies() for c in v.counters if "SUM(pipe_" in c.formula}
"""Counters of machine code alone: tests/validate/test_machine_code_counts.py has a chip's."""
