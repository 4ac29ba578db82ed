"""The registry holds everything the paper has, and says what it costs."""

import pytest

from bayesknn.paper import REGISTRY, find_items
from bayesknn.paper.budget import BUDGETS, FULL

FIGURES = """ripley leave1 levelset pseudoo constappro1 constappro2 psycho imperfecto perfecto
pseudoA pseudoB proba-compa perfindian""".split()


def test_thirteen_figures_and_two_tables():
    assert {id for id in REGISTRY if id.startswith("fig:")} == {f"fig:{id}" for id in FIGURES}
    assert {id for id in REGISTRY if id.startswith("tab:")} == {"tab:knn-ripley", "tab:knn-indian"}


def test_every_item_is_described():
    for item in REGISTRY.values():
        assert item.title and item.where and item.caption and item.quantities
        assert all(quantity.what for quantity in item.quantities.values())
        assert all(hasattr(FULL, name) for name in item.budget)


def test_every_number_that_may_differ_says_why():
    # Nothing random, or a sentence: then there is nothing to explain away.
    for item in REGISTRY.values():
        for name, quantity in item.quantities.items():
            if quantity.holds is not None and not quantity.why:
                assert quantity.source == "paper", (item.id, name)


def test_the_full_budget_has_the_papers_numbers():
    assert FULL.long_chain == (40_000, 10_000)
    assert FULL.perfect_chain == FULL.fixed_k_chain == (10_000, 10_000)
    assert FULL.pima_first_stage == 10_000 and sum(FULL.pima_chain) == 50_000
    assert FULL.pima_chain[1] == 20_000
    assert FULL.n_path_betas == 50 and FULL.path_sweeps == (500, 10_000)
    assert BUDGETS["quick"].n_partitions >= 100


def test_labels_of_the_paper_are_understood():
    assert [item.id for item in find_items(["psycho", "fig:ripley"])] == [
        "fig:ripley",
        "fig:psycho",
    ]
    with pytest.raises(ValueError, match="there is no 'fig:nothing' in the paper"):
        find_items(["fig:nothing"])
