"""Each block of Python in the pages runs as it stands, pasted alone."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = [
    (path.stem, at, code)
    for path in sorted(DOCS.glob("*.md"))
    for at, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL))
]


def test_there_is_python_in_the_pages():
    assert len(BLOCKS) >= 3


# Whether a chain is long enough for these points is not the page's business.
@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
# joblib's cache says so where a disk is slow for half a second.
@pytest.mark.filterwarnings("ignore:Persisting input arguments took")
@pytest.mark.parametrize(("page", "at", "code"), BLOCKS, ids=lambda value: str(value)[:12])
def test_python_in_a_page_runs(page, at, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page}.md", "exec"), {})
