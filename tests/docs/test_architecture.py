"""The page on the folders names every folder, and files and functions that exist."""

import re
from pathlib import Path

import pytest

from bayesknn import reference

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bayesknn"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())
ROWS = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| `")]
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))


def names(text):
    return re.findall(r"`([\w.]+)`", text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_is_named(folder):
    assert folder == "_utils" or any(folder in names(row[0]) for row in ROWS)


def test_functions_of_the_reference_exist():
    functions = [name for row in ROWS for name in names(row[-1])]
    assert len(functions) >= 20
    assert all(hasattr(reference, name) for name in functions)


@pytest.mark.parametrize("folder", [name for name in SECTIONS if name in FOLDERS])
def test_files_named_in_a_section_are_in_the_folder(folder):
    files = re.findall(r"(?<!reference )`(\w+\.py)`", SECTIONS[folder])
    assert files and "Open first: " in SECTIONS[folder]
    for file in files:
        assert list((SOURCE / folder).rglob(file)), file


def test_folders_that_compute_have_a_section():
    computing = [row for row in ROWS if len(names(row[0])) == 1 and row[-1].strip()]
    assert {names(row[0])[0] for row in computing} <= set(SECTIONS)
