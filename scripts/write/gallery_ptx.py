"""Write the PTX beside every gallery source: `python scripts/write/gallery_ptx.py`.

So the gallery works where NVIDIA publishes no compiler (macOS), and shows what the compiler made.
The launch comments of the source stand at the top of the PTX too.
"""

from pathlib import Path

from cutrace.tracer.front import cuda
from cutrace.tracer.front.source import Options, Source
from cutrace.tracer.session.source.launch_line import find_launch_comments, parse_launch

GALLERY = Path(__file__).parents[2] / "traces" / "gallery"
TARGET = "compute_75"


def ptx_of(source: Path) -> str:
    """Compile a gallery source with the template instances that its launch comments name."""
    text = source.read_text(encoding="utf-8")
    launches = [comment.text for comment in find_launch_comments(text)]
    kernels = dict.fromkeys(parse_launch(launch).kernel for launch in launches)
    templates = tuple(kernel for kernel in kernels if "<" in kernel)
    compiled = cuda.to_ptx(Source(source.name, text, Options(name_expressions=templates)), TARGET)
    return "\n".join([*(f"// cutrace: {launch}" for launch in launches), "", compiled.ptx])


def without_comments(ptx: str) -> str:
    """The PTX without comment lines: the compiler's version is in one."""
    return "\n".join(line for line in ptx.splitlines() if not line.startswith("//"))


def main() -> None:
    """Write every copy."""
    for source in sorted(GALLERY.glob("*/*.cu")):
        source.with_suffix(".ptx").write_text(ptx_of(source), encoding="utf-8")
        print(source.with_suffix(".ptx").relative_to(GALLERY))


if __name__ == "__main__":
    main()
