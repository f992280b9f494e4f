"""Python scripts on a command line: those that import cutrace run here, others as programs."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

_RECORDS_ITSELF = re.compile(r"^\s*(?:import|from)\s+cutrace\b", re.MULTILINE)


def script_command(sources: Sequence[Path], behind: Sequence[str] | None) -> tuple[str, ...]:
    """The command that runs a script which does not import cutrace; empty where there is none.

    What stands behind the script, and `behind` the `--`, are its arguments.
    """
    script = sources[0] if sources else Path()
    if script.suffix != ".py" or not script.is_file():
        return ()
    if _RECORDS_ITSELF.search(script.read_text(encoding="utf-8", errors="replace")):
        return ()
    return (sys.executable, *map(str, sources), *(behind or ()))
