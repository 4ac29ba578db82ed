"""Tests of the whole reproduction at the tiny budget: items, files and resumed runs."""

import csv
import json
import shutil

import pytest

from bayesknn.paper import REGISTRY, run_paper
from bayesknn.paper.comparison import KINDS, NOT_PUBLISHED, VERDICTS
from bayesknn.paper.run import count_verdicts

COLUMNS = """id quantity what source kind published ours error spread unit verdict
explanation""".split()
# Items, and quantities of items (None for all), that are computed without random numbers. Their
# verdict must be "exact", or "confirmed" if the value compared with was not published.
EXACT = {
    "fig:ripley": None,
    "tab:knn-ripley": None,
    "fig:leave1": None,
    "tab:knn-indian": None,
    "num:loo-pima": None,
    "num:pima-sizes": None,
    "num:glass-sizes": None,
    "num:pseudo-maximum": None,
    "num:holmes-adams": None,
    "num:error-by-k": {f"k={k}" for k in (13, 14, 15, 17, 20, 25, 30)},
    "ref:log-z": None,
    "fig:constappro1": {"zero"},
    "fig:constappro2": {"zero"},
    "ref:posterior": {"pseudo_beta", "pseudo_beta_sd", "pseudo_k", "pseudo_k_sd", "mode"},
    "extra:exact-posterior": {"loss_ha"},
}


def test_every_id_is_executed(tiny_run):
    assert [outcome.item.id for outcome in tiny_run.outcomes] == list(REGISTRY)
    for outcome in tiny_run.outcomes:
        assert {row.quantity for row in outcome.rows} == set(outcome.item.quantities)
        assert bool(outcome.figures) or not outcome.item.id.startswith("fig:")


@pytest.mark.parametrize("id", EXACT)
def test_exact_numbers_are_exact(tiny_run, id):
    rows = [row for row in tiny_run.rows if row.id == id]
    wanted = EXACT[id] or {row.quantity for row in rows}
    best = {"paper": "exact", "independent": "confirmed"}
    for row in rows:
        assert row.quantity not in wanted or row.verdict == best[row.source], row


def test_sentences_that_no_figure_shows_have_verdicts(tiny_run):
    rows = {(row.id, row.quantity): row for row in tiny_run.rows}
    # None of these quantities uses a chain, so the verdicts are the same with every budget.
    for id, quantity, verdict in (
        ("num:no-joint", "three", "borne out"),
        ("num:no-joint", "ripley", "borne out"),
        ("num:no-joint", "coherent", "borne out"),
        ("num:symmetric", "ring", "borne out"),
        ("num:black-or-white", "larger_1", "not borne out"),
        ("num:information", "pseudo", "borne out"),
        ("num:accept-reject", "accepted", "not borne out"),
        ("num:beta-over-k", "ripley", "not borne out"),
        ("fig:perfindian", "avoided", "borne out"),
    ):
        assert rows[id, quantity].verdict == verdict
    assert rows["num:no-joint", "three"].ours == pytest.approx(2.0)
    assert rows["num:accept-reject", "accepted"].ours == pytest.approx(
        1003.37011407 - 521.41875105 - 2 * 250, abs=1e-6
    )
    assert -0.6 < rows["num:beta-over-k", "ripley"].ours < 0
    assert rows["num:beta-over-k", "pseudo_ripley"].ours > 0
    # Bounds for means over 20 draws of 250 labels: neighbours agree, but classes are of equal size.
    assert rows["num:black-or-white", "agree_1"].ours > 0.98
    assert rows["num:black-or-white", "larger_1"].ours < 0.6
    assert rows["num:black-or-white", "larger_125"].ours > 0.95
    assert rows["num:symmetric", "ripley"].ours > 0.05
    # These are computed from the exact posterior. The prior probability of the 10 values is .147.
    assert rows["fig:perfindian", "avoided"].ours == pytest.approx(0.060, abs=0.01)
    assert rows["num:error-pima", "exact_average"].ours == pytest.approx(0.2147, abs=0.003)
    assert rows["num:glass", "chain"].published == rows["num:glass", "bayes"].published


def test_an_error_rate_has_one_verdict_at_any_length_of_the_chain(tiny_run):
    """The verdict uses the exact posterior, whose error rate is .092 to .095, not the chains."""
    row = next(
        row for row in tiny_run.rows if (row.id, row.quantity) == ("num:error-perfect", "error")
    )
    assert row.published == 0.084 and row.verdict == "differs" and row.spread == 0
    assert 0.092 <= row.ours <= 0.095


def test_a_check_is_not_counted_as_a_published_number(tiny_run):
    counts = count_verdicts(tiny_run.rows)
    assert [list(each) for each in counts.values()] == [
        list(verdicts) for _, verdicts in KINDS.values()
    ]
    for (name, each), kind in zip(counts.items(), KINDS, strict=True):
        assert sum(each.values()) == sum(row.kind == kind for row in tiny_run.rows), name
    for row in tiny_run.rows:
        assert (row.kind == "check") == (row.source == "independent")
        assert (row.kind == "sentence") <= isinstance(row.published, str)
        assert row.verdict in (KINDS[row.kind][1] if row.kind else [NOT_PUBLISHED])


def test_figures_are_written_as_png_and_svg(tiny_run):
    for outcome in tiny_run.outcomes:
        for name in outcome.figures:
            path = tiny_run.folder / name
            assert path.read_bytes().startswith(b"\x89PNG")
            assert "<svg" in path.with_suffix(".svg").read_text()[:1000]


def test_comparison_files(tiny_run):
    content = json.loads((tiny_run.folder / "comparison.json").read_text())
    assert content["budget"] == "tiny" and content["seed"] == 0 and content["version"]
    with open(tiny_run.folder / "comparison.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == len(content["rows"]) == len(tiny_run.rows)
    for row, line in zip(content["rows"], table, strict=True):
        assert list(row) == list(line) == COLUMNS
        assert row["verdict"] in VERDICTS
        assert row["explanation"].endswith(".") and "\n" not in row["explanation"]
        assert (row["published"] is None) == (row["verdict"] == "not published")
        assert line["what"] == row["what"]
    best = next(pair for pair in zip(content["rows"], table, strict=True)
                if (pair[0]["id"], pair[0]["quantity"]) == ("num:loo-pima", "best"))  # fmt: skip
    assert [int(k) for k in best[1]["published"].split("; ")] == best[0]["published"]


def test_a_second_run_computes_nothing(tiny_run, tmp_path):
    shutil.copytree(tiny_run.folder, tmp_path / "copy")
    again = run_paper(tmp_path / "copy", "tiny", verbose=0)
    assert not any(outcome.is_new for outcome in again.outcomes)
    assert again.rows == tiny_run.rows


def test_an_interrupted_run_goes_on(tmp_path):
    # The last id lacks its prefix "fig:", which may be omitted.
    ids = ["num:pima-sizes", "fig:ripley", "leave1"]

    def stop(outcome):
        if outcome.item.id == "fig:leave1":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_paper(tmp_path, "tiny", only=ids, verbose=0, report=stop)
    assert "Leave-one-out error" in (tmp_path / "index.html").read_text()
    again = run_paper(tmp_path, "tiny", only=ids, verbose=0)
    assert {o.item.id: o.is_new for o in again.outcomes} == {
        "fig:ripley": False, "fig:leave1": False, "num:pima-sizes": True,
    }  # fmt: skip


def test_only_and_order_change_no_result(tiny_run, tmp_path):
    ids = ["fig:pseudoo", "num:error-pseudo"]
    for id in reversed(ids):
        run = run_paper(tmp_path, "tiny", only=[id], verbose=0)
    assert [outcome.item.id for outcome in run.outcomes] == ids
    assert run.rows == [row for row in tiny_run.rows if row.id in ids]


@pytest.mark.parametrize(
    "ids",
    [
        ["fig:pseudoA", "fig:imperfecto"],
        pytest.param(["num:glass", "extra:breakdown"], marks=pytest.mark.slow),
    ],
)
def test_threads_change_no_result(tiny_run, tmp_path, ids):
    run = run_paper(tmp_path, "tiny", only=ids, n_jobs=2, verbose=0)
    assert run.rows == [row for row in tiny_run.rows if row.id in ids]


def test_another_seed_or_a_lost_figure_is_computed_again(tmp_path):
    ids = ["fig:leave1", "num:pima-sizes"]
    run_paper(tmp_path, "tiny", only=ids, verbose=0)
    other = run_paper(tmp_path, "tiny", only=ids, seed=1, verbose=0)
    assert all(outcome.is_new for outcome in other.outcomes)
    (tmp_path / "figures" / "fig-leave1.png").unlink()
    again = run_paper(tmp_path, "tiny", only=ids, seed=1, verbose=0)
    assert [outcome.is_new for outcome in again.outcomes] == [True, False]
    forced = run_paper(tmp_path, "tiny", only=["num:pima-sizes"], seed=1, verbose=0, force=True)
    assert [outcome.is_new for outcome in forced.outcomes] == [False, True]


def test_a_damaged_file_is_computed_again(tmp_path):
    run_paper(tmp_path, "tiny", only=["num:pima-sizes"], verbose=0)
    (tmp_path / "paper-work" / "num-pima-sizes.json").write_text("{")
    again = run_paper(tmp_path, "tiny", only=["num:pima-sizes"], verbose=0)
    assert again.outcomes[0].is_new


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="contains files, but no earlier run"):
        run_paper(tmp_path, "tiny", only=["num:pima-sizes"], verbose=0)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    run_paper(tmp_path, "tiny", only=["num:pima-sizes"], verbose=0, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="budget must be one of"):
        run_paper(tmp_path, "huge")
    with pytest.raises(ValueError, match="'fig:nothing' is not the id of a figure"):
        run_paper(tmp_path, only=["fig:nothing"])
    with pytest.raises(ValueError, match="is a file"):
        (tmp_path / "file").write_text("")
        run_paper(tmp_path / "file", "tiny")
    assert not (tmp_path / "index.html").exists()
