import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cutrace

ROOT = Path(__file__).parents[2]


def test_the_list_of_founding_documents_is_what_the_tests_say() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "write" / "founding_documents.py"), "--print"]
    made = subprocess.run(script, capture_output=True, text=True, cwd=ROOT)
    assert made.returncode == 0, made.stderr
    kept = (ROOT / "docs" / "founding-documents.md").read_text(encoding="utf-8")
    assert made.stdout == kept, "run scripts/write/founding_documents.py"


@pytest.mark.document("000.8", "65536 bytes fit, 65540 are refused")
@pytest.mark.parametrize(("words", "fits"), [(16384, True), (16385, False)])
def test_constant_memory_ends_at_64_kilobytes(tmp_path: Path, words: int, fits: bool) -> None:
    source = (
        f"__constant__ float table[{words}];\n"
        "__global__ void read(float *out) { *out = table[blockIdx.x]; }\n"
    )
    with cutrace.Session(tmp_path / "constant.cutrace") as gpu:
        if not fits:
            with pytest.raises(cutrace.CutraceError, match="`table` needs 65540 bytes of const"):
                gpu.compile(source)
            return
        out = gpu.device_array(1, np.float32)
        gpu.compile(source).get_function("read")[1, 1](out)
