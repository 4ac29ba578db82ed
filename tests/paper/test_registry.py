"""What was published: everything the paper has, said of each what it is and what it costs."""

import pytest

from bayesknn.paper import REGISTRY, find_items
from bayesknn.paper.comparison import item, published_rates, read_published
from bayesknn.paper.setting import BUDGETS

FIGURES = """ripley leave1 levelset pseudoo constappro1 constappro2 psycho imperfecto perfecto
pseudoA pseudoB proba-compa perfindian""".split()


def test_thirteen_figures_and_two_tables():
    assert {id for id in REGISTRY if id.startswith("fig:")} == {f"fig:{id}" for id in FIGURES}
    assert {id for id in REGISTRY if id.startswith("tab:")} == {"tab:knn-ripley", "tab:knn-indian"}


def test_every_item_is_described():
    for each in REGISTRY.values():
        assert each.title and each.where and each.caption and each.quantities
        assert all(quantity.what for quantity in each.quantities.values())
        assert set(each.budget) <= set(vars(BUDGETS["quick"]))


def test_sentences_have_a_condition_and_values_have_none():
    for each in REGISTRY.values():
        for name, quantity in each.quantities.items():
            is_sentence = isinstance(quantity.published, str)
            assert (quantity.holds is not None) == is_sentence, (each.id, name)


def test_the_file_has_no_words_that_nobody_reads():
    known = {"what", "paper", "independent", "decimals", "unit", "why", "remark"}
    for entry in read_published().values():
        assert set(entry) - {"budget"} == {"id", "title", "where", "caption", "numbers"}
        for number in entry["numbers"].values():
            assert set(number) <= known and not {"paper", "independent"} <= set(number)


def test_published_tables():
    assert published_rates("tab:knn-ripley") == {
        1: 0.150, 3: 0.134, 15: 0.095, 17: 0.087, 31: 0.084, 54: 0.081,
    }  # fmt: skip
    assert published_rates("tab:knn-indian")[57] == 0.205
    # Of an item with other numbers, those by k.
    assert list(published_rates("num:error-by-k")) == [13, 14, 15, 17, 20, 25, 30]


def test_a_condition_on_no_number_is_refused():
    with pytest.raises(ValueError, match="num:glass: there is no number smalller"):
        item("num:glass", smalller=lambda rate: True)


def test_the_full_budget_has_the_papers_numbers():
    full = BUDGETS["full"]
    assert full.long_chain == (40_000, 10_000)
    assert full.perfect_chain == full.fixed_k_chain == (10_000, 10_000)
    assert full.pima_first_stage == 10_000 and sum(full.pima_chain) == 50_000
    assert full.pima_chain[1] == 20_000
    assert full.n_path_betas == 50 and full.path_sweeps == (500, 10_000)
    assert BUDGETS["quick"].n_partitions >= 100


def test_labels_of_the_paper_are_understood():
    assert [each.id for each in find_items(["psycho", "fig:ripley"])] == [
        "fig:ripley",
        "fig:psycho",
    ]
    with pytest.raises(ValueError, match="there is no 'fig:nothing' in the paper"):
        find_items(["fig:nothing"])
