"""The page shows the reference whole, section by section, and names what is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "paper_in_400_lines.md").read_text()
SOURCE = DOCS.parent / "src" / "bayesknn"
SECTIONS = re.findall(r"^# (Section [\d.]+):", (SOURCE / "reference.py").read_text(), re.MULTILINE)


def test_the_reference_is_shown_whole():
    blocks = re.findall(r"```\{literalinclude\} (\S+)\n(.*?)```", PAGE, re.DOTALL)
    assert all((DOCS / path).resolve() == SOURCE / "reference.py" for path, _ in blocks)
    starts, ends = (
        [re.findall(rf':{option}: "# (.*):"', text) for _, text in blocks]
        for option in ("start-at", "end-before")
    )
    assert starts == [[], *([one] for one in SECTIONS)]
    assert ends == [*([one] for one in SECTIONS), []]


@pytest.mark.parametrize("name", re.findall(r"\{\w+\}`~(bayesknn[\w.]+)`", PAGE))
def test_each_link_leads_to_the_api(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(import_module(module), attribute)
    assert re.search(rf"currentmodule:: {module}\n[^:]*:[^=]*\n   {attribute}\n", API), name


@pytest.mark.parametrize("path", re.findall(r"`([\w/]+(?:\.py|/))`", PAGE))
def test_each_path_exists(path):
    assert (SOURCE / path).exists()


API = (DOCS / "api.rst").read_text()
