"""What keeps the package readable: borders between folders, and one name for one module."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import bayesknn

ROOT = Path(bayesknn.__file__).parent
SOURCES = sorted(path for path in ROOT.rglob("*.py"))


def folder_of(module):
    """Return the part of the package that a module belongs to: its first folder, or its file."""
    return module.split(".")[1] if "." in module else module


def private_imports(path):
    """Yield the names with an underscore that a file takes from another folder's modules."""
    here = folder_of(".".join(["bayesknn", *path.relative_to(ROOT).with_suffix("").parts]))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesknn."):
            if folder_of(node.module) != here and not folder_of(node.module).startswith("_"):
                private = [n.name for n in node.names if n.name.startswith("_")]
                parts = node.module.split(".")[2:]
                private += [part for part in parts if part.startswith("_") and part != "__main__"]
                yield from (f"{node.module}: {name}" for name in private)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_names_do_not_cross_the_borders_of_folders(path):
    assert not list(private_imports(path))


def test_the_test_above_would_notice(tmp_path):
    folder = ROOT / "posterior"
    path = tmp_path / "file.py"
    path.write_text("from bayesknn.labels.random import _mix\n")
    tree = ast.parse(path.read_text()).body[0]
    assert folder_of(tree.module) == "labels" != folder.name
    assert [n.name for n in tree.names if n.name.startswith("_")] == ["_mix"]


# Names that still stand for two modules each, to be given up one by one.
SHARED = {
    "chains", "classifier", "columns", "leave_one_out", "metrics", "page", "plane",
}  # fmt: skip
HIDDEN = {"log_z": {"path_table"}}


def test_no_more_modules_share_a_name():
    stems = Counter(path.stem for path in SOURCES if not path.stem.startswith("__"))
    assert {stem for stem, n in stems.items() if n > 1} <= SHARED


def test_no_public_function_hides_a_module():
    for path in SOURCES:
        if path.name == "__init__.py" and path.parent != ROOT:
            names = {
                alias.asname or alias.name
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            modules = {other.stem for other in path.parent.iterdir()}
            assert names & modules <= HIDDEN.get(path.parent.name, set()), path


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "py.typed").exists()
