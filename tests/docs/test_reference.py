"""The reference lists names that exist, and no more than a reader can look through."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.utils import estimator_html_repr

from bayesknn._estimator import DOCUMENTATION

PAGE = (Path(__file__).parents[2] / "docs" / "api.rst").read_text()
COMPLETE = ("", ".datasets", ".exceptions")
MOST = 60


def listed():
    """Yield each module of the page with the names below it."""
    parts = re.split(r"^\.\. currentmodule:: (\S+)$", PAGE, flags=re.MULTILINE)[1:]
    for module, text in zip(parts[::2], parts[1::2], strict=True):
        yield module, re.findall(r"^   (\w+)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("module", "names"), list(listed()), ids=lambda value: str(value)[:24])
def test_listed_names_exist(module, names):
    assert names
    for name in names:
        assert hasattr(import_module(module), name), f"{module}.{name}"


def test_the_reference_is_short():
    assert sum(len(names) for _, names in listed()) <= MOST


@pytest.mark.parametrize("package", COMPLETE)
def test_public_names_are_listed(package):
    module = import_module(f"bayesknn{package}")
    every = {name for _, names in listed() for name in names}
    public = [n for n in getattr(module, "__all__", vars(module)) if not n.startswith("_")]
    assert set(public) <= every | {"annotations", "Any"}, set(public) - every


def test_the_html_of_an_estimator_links_to_its_page():
    """Where autosummary writes the page: ``:toctree: api`` and the name as listed."""
    links = {
        f"{DOCUMENTATION}/api/{module}.{name}.html": getattr(import_module(module), name)
        for module, names in listed()
        for name in names
    }
    estimators = {link: cls for link, cls in links.items() if hasattr(cls, "get_params")}
    assert len(estimators) == 7
    for link, cls in estimators.items():
        assert f'href="{link}"' in estimator_html_repr(cls())
