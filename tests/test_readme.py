"""The README's Python runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_ten_lines_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    beta_mean, k_mean, log_evidence = map(float, capsys.readouterr().out.split())
    # What the comment in the README says.
    assert abs(beta_mean - 1.46) < 0.01
    assert abs(k_mean - 15.0) < 0.3
    assert abs(log_evidence + 94.5) < 1.0
