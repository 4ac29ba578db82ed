"""What keeps the package readable: borders between folders, and other packages by public names."""

import ast
import sys
from pathlib import Path

import bayesknn

ROOT = Path(bayesknn.__file__).parent
SOURCES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_bytes()) for path in ROOT.rglob("*.py")
}
HIDDEN = {"log_z": {"path_table"}}
# Folders of other packages that hold private modules without an underscore to say so.
PRIVATE = ("numba.core", "numba.np", "numpy.core", "scipy.linalg.cython", "matplotlib.cbook")
# numba's documentation offers its events to applications ('Event API').
EVENTS = "numba.core.event"
# Documented all the same: of named tuples, and of scikit-learn's CallbackSupportMixin.
DOCUMENTED = {"_asdict", "_fields", "_replace", "_init_callback_context"}


def folder_of(module):
    """Return the part of the package that a module belongs to: its first folder, or its file."""
    return module.split(".")[1] if "." in module else module


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def own_names():
    """Return DOCUMENTED and all that the package itself defines or assigns."""
    found = set(DOCUMENTED)
    for node in (node for tree in SOURCES.values() for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.attr if isinstance(node, ast.Attribute) else node.id)
    return found


OWN = own_names()


def crossings(name, tree):
    """Yield the names with an underscore that a file takes from another folder's modules."""
    here = folder_of(".".join(["bayesknn", *Path(name).with_suffix("").parts]))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesknn."):
            if folder_of(node.module) != here and not folder_of(node.module).startswith("_"):
                words = [*node.module.split(".")[2:], *(alias.name for alias in node.names)]
                yield from (f"{name}: {node.module}: {word}" for word in words if is_private(word))


def private_imports(name, tree):
    """Yield what a file imports of another package's private parts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module.partition(".")[0] not in {"bayesknn", *sys.stdlib_module_names}:
                if module == EVENTS:
                    continue
                if any(map(is_private, module.split("."))) or module.startswith(PRIVATE):
                    yield f"{name}: {module}"


def private_attributes(name, tree, own=OWN):
    """Yield the attributes with an underscore that are defined nowhere in the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield f"{name}: {ast.unparse(node)}"


def changes_of_modules(name, tree):
    """Yield what a file does to ``sys.modules``, but for looking something up."""
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            text = ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            text = ast.unparse(node.func)
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            text = " ".join(f"sys.{alias.name}[" for alias in node.names)
        if "sys.modules[" in text or ("sys.modules." in text and text != "sys.modules.get"):
            yield f"{name}: {text}"


def find(rule):
    return sorted(line for name, tree in SOURCES.items() for line in rule(name, tree))


def notices(rule, source, name="posterior/file.py"):
    return list(rule(name, ast.parse(source))) != []


def test_private_names_do_not_cross_the_borders_of_folders():
    assert find(crossings) == []
    mutant = "from bayesknn.labels.swendsen_wang import _recolour"
    assert notices(crossings, mutant)
    assert not notices(crossings, mutant, "labels/file.py")


def test_other_packages_are_used_by_their_public_names():
    assert find(private_imports) == []
    assert find(private_attributes) == []
    assert notices(private_imports, "from sklearn.utils.validation import _num_samples")
    assert notices(private_imports, "import numba.core.caching as caching")
    assert notices(private_imports, "def f():\n    from numba import _dynfunc")
    assert notices(private_attributes, "import numpy as np\nnp._core.umath")
    assert notices(private_attributes, "compiled._cache._cache_file = None")
    assert not notices(private_imports, "from numpy.linalg import norm\nfrom os import _exit")


def test_loaded_modules_are_not_replaced():
    assert find(changes_of_modules) == []
    assert notices(changes_of_modules, "sys.modules['scipy.stats'] = None")
    assert notices(changes_of_modules, "del sys.modules['scipy.stats']")
    assert notices(changes_of_modules, "sys.modules.setdefault('scipy.stats', None)")
    assert notices(changes_of_modules, "from sys import modules")
    assert not notices(changes_of_modules, "sys.modules.get('dask')")


def test_no_public_function_hides_a_module():
    for path in ROOT.glob("*/**/__init__.py"):
        names = {
            alias.asname or alias.name
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        modules = {other.stem for other in path.parent.iterdir()}
        assert names & modules <= HIDDEN.get(path.parent.name, set()), path


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "py.typed").exists()
