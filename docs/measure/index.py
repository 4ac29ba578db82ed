"""Output of the code examples on the first page."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "index.md"
# Names of the output files, one for each Python block of the page in its order.
OUTPUTS = ("index_paper.md", "index_pool.md")


def run(out: Path) -> dict[str, str]:
    """Run the examples and write the output of each."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for code, name in zip(blocks, OUTPUTS, strict=True):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, PAGE.name, "exec"), {})
        (out / name).write_text(f"```text\n{printed.getvalue()}```\n")
    return {}
