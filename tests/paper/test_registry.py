"""Tests of published.toml: it covers the paper, and every entry is complete."""

import tomllib
from importlib.resources import files

from bayesknn.paper import REGISTRY
from bayesknn.paper.setting import Setting

FIGURES = """ripley leave1 levelset pseudoo constappro1 constappro2 psycho imperfecto perfecto
pseudoA pseudoB proba-compa perfindian""".split()


def test_thirteen_figures_and_two_tables():
    assert {id for id in REGISTRY if id.startswith("fig:")} == {f"fig:{id}" for id in FIGURES}
    assert {id for id in REGISTRY if id.startswith("tab:")} == {"tab:knn-ripley", "tab:knn-indian"}


def test_every_item_is_described():
    for each in REGISTRY.values():
        assert each.title and each.where and each.caption and each.quantities
        assert all(quantity.what for quantity in each.quantities.values())
        assert set(each.budget) <= set(vars(Setting("quick").budget))


def test_sentences_have_a_condition_and_values_have_none():
    for each in REGISTRY.values():
        for name, quantity in each.quantities.items():
            is_sentence = isinstance(quantity.published, str)
            assert (quantity.holds is not None) == is_sentence, (each.id, name)


def test_the_file_has_no_unused_keys():
    known = {"what", "paper", "independent", "decimals", "unit", "why", "remark"}
    text = files("bayesknn.paper").joinpath("published.toml").read_text("utf-8")
    entries = tomllib.loads(text)["item"]
    assert [entry["id"] for entry in entries] == list(REGISTRY)
    for entry in entries:
        assert set(entry) - {"budget"} == {"id", "title", "where", "caption", "numbers"}
        for number in entry["numbers"].values():
            assert set(number) <= known and not {"paper", "independent"} <= set(number)


def test_published_tables():
    def rates(id):
        return {name: quantity.published for name, quantity in REGISTRY[id].quantities.items()}

    assert rates("tab:knn-ripley") == {
        "k=1": 0.150, "k=3": 0.134, "k=15": 0.095, "k=17": 0.087, "k=31": 0.084, "k=54": 0.081,
    }  # fmt: skip
    assert rates("tab:knn-indian")["k=57"] == 0.205


def test_the_full_budget_has_the_papers_numbers():
    full = Setting("full").budget
    assert full.long_chain == (40_000, 10_000)
    assert full.perfect_chain == full.fixed_k_chain == (10_000, 10_000)
    assert full.pima_first_stage == 10_000 and sum(full.pima_chain) == 50_000
    assert full.pima_chain[1] == 20_000
    assert full.n_path_betas == 50 and full.path_sweeps == (500, 10_000)
    assert Setting("quick").budget.n_partitions >= 100
