"""The page of equations names things that exist, and forgets no label of the paper."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import bayesknn

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "equations.md").read_text()
SOURCE = ROOT / "src" / "bayesknn"
PACKAGES = {path.name.removesuffix(".py") for path in SOURCE.iterdir()}
NAMES = sorted(
    name for name in set(re.findall(r"`([\w/.]+)`", PAGE)) if re.split(r"[./]", name)[0] in PACKAGES
)
# Of the LaTeX source: equations, figures and tables.
LABELS = (
    "eq:knn-intuit eq:jointHA eq:knn eq:knn-cond eq:knn-pred eq:trupred eq:MCpred eq:psudoL "
    "fig:ripley fig:leave1 fig:levelset pseudoo fig:constappro1 fig:constappro2 psycho imperfecto "
    "perfecto pseudoA pseudoB proba-compa perfindian tab:knn-ripley tab:knn-indian"
).split()


def test_names_are_found():
    assert len(NAMES) > 30


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name):
    if name.endswith(".py") or "/" in name:
        assert (SOURCE / name).exists()
        return
    parts = name.split(".")
    found = getattr(bayesknn, parts[0])
    for part in parts[1:]:
        found = getattr(found, part)


@pytest.mark.parametrize("label", LABELS)
def test_label_is_on_the_page(label):
    assert f"`{label}`" in PAGE


def test_ids_are_in_the_registry():
    registry = import_module("bayesknn.paper").REGISTRY
    rows = [line for line in PAGE.splitlines() if line.startswith(("| Figure", "| Table"))]
    ids = [id for row in rows for id in re.findall(r"`([\w:-]+)`", row.split("|")[-2])]
    assert len(ids) >= 15
    assert set(ids) <= set(registry)
    # Every figure and table that can be computed has its line.
    assert {id for id in registry if id.startswith(("fig:", "tab:"))} <= set(ids)
