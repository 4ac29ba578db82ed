"""Sentences of the page: each case was stated wrongly once."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from bayesknn.evaluation.comparison import Compared, Comparison
from bayesknn.evaluation.scores import Scores, score_rows
from bayesknn.model_file.predictions import Predictions
from bayesknn.report import analyse
from bayesknn.report.analysis import Analysis
from bayesknn.report.page import make_headline, make_thresholds, render_report
from tests.report.tables import QUICK, run, two_columns

POSTERIOR = "Bayesian kNN (Cucala et al. 2009), pseudo likelihood"


@pytest.fixture(scope="module")
def analysis():
    """Training rows, and test rows of which some have no class and many are predicted wrong."""
    table = two_columns(90)
    test = two_columns(60, seed=1).astype({"y": float})
    test["y"] = np.where(np.arange(60) % 4 == 0, 1 - test["y"], test["y"])
    test.loc[:9, "y"] = np.nan
    return analyse(table, "y", test, settings=QUICK)


def text_of(analysis):
    page = render_report(analysis, source="t", command="", files={})
    return " ".join(
        re.sub("<[^>]*>", "", page[page.index("<body>") :]).replace("\xa0", " ").split()
    )


@pytest.mark.parametrize(
    ("excess", "told"),
    [
        (0.107, "changed by -0.107 ± 0.020. More rows are likely to help."),
        (0.03, "changed by -0.030 ± 0.020. More rows may help."),
        (0.01, "changed by -0.010 ± 0.020. That is within chance"),
        (-0.03, "changed by +0.030 ± 0.020. That is within chance"),
        (-0.107, "changed by +0.107 ± 0.020. The larger fits were worse, by more than chance"),
    ],
)
def test_what_more_rows_changed_is_called_what_it_is(analysis, excess, told):
    scores = Scores(90, 0.2, 0.4, 0.3)
    own = Compared(scores, scores, 0.0, 0.0, 72)
    half = Compared(scores, scores, excess, 0.02, 36)
    other = Compared(scores, scores, 0.1, 0.02, 72)
    results = {POSTERIOR: own, "logistic regression": other}
    analysis.comparison = Comparison(results, 5, POSTERIOR, half, [])
    text = text_of(analysis)
    assert told in text
    assert ("Collect more rows" in text) == (excess > 0.04)


def test_decided_rows_are_scored_where_the_error_is_measured(analysis):
    """On the test rows of known class, not on left-out training rows."""
    test = analysis.test
    rows = np.flatnonzero((test.actual >= 0) & (test.zones >= 0))
    wrong = np.mean(test.winners[rows] != test.actual[rows])
    assert wrong > 2 * analysis.training.decided["error"]
    shown = f"{100 * wrong:.1f} %"
    text = text_of(analysis)
    assert f"{shown} of the {len(rows)} decided rows (test rows) are predicted wrong" in text
    assert f"are expected to be wrong, and {shown} are." in text


def predictions_of(labels, winners, n_classes=2):
    """Return left-out predictions of classes with probability .9."""
    p = np.where(np.arange(n_classes) == winners[:, None], 0.9, 0.1 / (n_classes - 1))
    intervals = np.stack([p - 0.02, p + 0.02], axis=2)
    names = np.array([f"class {g}" for g in range(n_classes)])
    frame = pd.DataFrame(index=np.arange(len(labels)))
    return Predictions(names, p, intervals, labels, frame=frame, basis="leave-one-out")


@pytest.mark.parametrize(
    ("n_found", "n_wrong", "is_doubt"),
    [
        (6, 0, False),  # all of the rare class
        (6, 20, False),  # and fewer of the others
        (5, 0, True),
        (1, 20, True),
    ],
)
def test_a_rare_class_that_is_found_is_nothing_to_beware_of(n_found, n_wrong, is_doubt):
    labels = np.repeat([0, 1], [94, 6])
    winners = labels.copy()
    winners[:n_wrong] = 1
    winners[94 : 100 - n_found] = 0
    doubts = make_headline(Analysis(None, predictions_of(labels, winners)))["doubts"]
    named = [text for text in doubts if "rare" in text]
    assert (
        named
        == [
            "the error hardly depends on rare classes; recall: "
            f"{n_found} of 6 rows of class 1 found when left out"
        ]
        * is_doubt
    )


def test_rows_of_weight_zero_are_in_no_sentence():
    labels = np.repeat([0, 1], [94, 12])
    winners = np.where(np.arange(106) % 12 == 0, 1 - labels, labels)
    whole = predictions_of(labels, winners)
    kept = np.flatnonzero(np.arange(106) % 2 == 0)
    part = predictions_of(labels[kept], winners[kept])
    whole.weights = np.where(np.arange(106) % 2 == 0, 1.0, 0.0)
    whole, part = Analysis(None, whole), Analysis(None, part)
    assert whole.describe_rare() == part.describe_rare() != ""
    wanted = make_headline(part)
    assert make_headline(whole)["doubts"] == wanted["doubts"]
    assert make_headline(whole)["error"] == pytest.approx(wanted["error"])


def test_no_warning_of_a_fold_reaches_the_screen(tmp_path, monkeypatch):
    """Categories and classes of few rows are missing from folds and from permuted rows."""
    monkeypatch.setattr("bayesknn.evaluation.comparison.list_candidates", lambda own: {})
    rng = np.random.default_rng(0)
    table = two_columns(120).assign(word=rng.choice(list("abc"), 120), group=np.arange(120) // 5)
    table.loc[:1, "word"] = ["only here", "and here"]
    table.loc[:3, "y"] = 2
    test = two_columns(30, 1).assign(word=rng.choice(list("abcd"), 30), group=0)
    for name, rows in (("train.csv", table), ("test.csv", test)):
        rows.to_csv(tmp_path / name, index=False)
    words = ("fit", tmp_path / "train.csv", "--target", "y", "--group", "group", "--no-compare")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        done = run(*words, "--test", tmp_path / "test.csv", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "site-packages" not in done.stderr and "UserWarning" not in done.stderr


@pytest.mark.parametrize("proportion", [0.5, 0.15])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_headline_numbers_on_noise(monkeypatch, proportion, is_weighted):
    """Probabilities that know nothing of the labels: each number is what theory says, on average.

    Of 100 tables of 200 rows a mean has a tenth of a table's standard deviation as its error.
    """
    monkeypatch.setattr("bayesknn.report.figures.draw_curves", lambda *_: [])
    rng = np.random.default_rng(0)
    numbers, covered = [], []
    for _ in range(100):
        n = 200
        labels = (rng.random(n) < proportion).astype(int)
        q = np.clip(proportion + 0.1 * rng.normal(size=n), 0.02, 0.98)
        weights = rng.uniform(0.5, 2.0, n) if is_weighted else np.ones(n)
        p = np.column_stack([1 - q, q])
        # Decided where the larger probability is above .55.
        half = np.where(p.max(axis=1) > 0.55, 0.04, 0.5)[:, None]
        made = Predictions(
            np.array(["no", "yes"]), p, np.stack([p - half, p + half], axis=2), labels, weights,
            frame=pd.DataFrame(index=np.arange(n)), basis="leave-one-out",
        )  # fmt: skip
        analysis = Analysis(None, made)
        headline = make_headline(analysis)
        area, low, high = make_thresholds(analysis)["area"]
        truth = np.column_stack([np.full(n, 1 - proportion), np.full(n, proportion)])

        def mean(values, weights=weights):
            return np.average(values, weights=weights)

        wrong = 1 - truth[np.arange(n), p.argmax(axis=1)]
        decided = p.max(axis=1) > 0.55
        expected = [
            mean(wrong), 0.5, mean(-(truth * np.log(p)).sum(axis=1)), mean(decided),
            np.average(wrong[decided], weights=weights[decided]),
        ]  # fmt: skip
        shown = [
            headline["error"][0], area, headline["log_loss"], made.share_decided,
            made.decided["error"],
        ]  # fmt: skip
        numbers.append(np.subtract(shown, expected))
        covered.append(
            [
                headline["error"][1] <= expected[0] <= headline["error"][2],
                low <= 0.5 <= high,
                headline["typical"][1] <= np.exp(-expected[2]) <= headline["typical"][2],
            ]
        )
        losses = score_rows(p, labels)[:, 1]
        assert headline["log_loss"] == pytest.approx(np.average(losses, weights=weights))
    errors = np.std(numbers, axis=0, ddof=1) / 10
    # Four numbers vary, in four cases: a false alarm once in about 1e4 at 4.5 errors.
    assert np.all(np.abs(np.mean(numbers, axis=0)) <= 4.5 * errors + 1e-12)
    assert np.mean(covered, axis=0) == pytest.approx(0.95, abs=4.5 * 0.0218)
