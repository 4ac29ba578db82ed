"""Weights of rows in every score: a row of weight 3 is three rows, a class prior moves classes."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, sem

from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier
from bayesknn.evaluation.scores import average, bound_proportion
from bayesknn.model_file.predictions import Predictions
from bayesknn.report import analyse
from bayesknn.report.analysis import Analysis, describe, summarise
from bayesknn.report.fitted import analyse_fitted
from bayesknn.report.page import (
    make_confusion,
    make_headline,
    make_thresholds,
    render_report,
)
from tests.report.tables import QUICK, run, two_columns

PRIOR = {"0": 0.1, "1": 0.9}


def analysis_of(p, actual, weights, zones):
    """Return an analysis of test rows with these probabilities of the second class."""
    low = np.where(zones[:, None] == np.arange(2), 0.6, 0.0)
    high = np.where(zones[:, None] >= 0, np.where(zones[:, None] == np.arange(2), 0.9, 0.5), 1.0)
    each = Predictions(
        np.array(["no", "yes"]), np.column_stack([1 - p, p]), np.stack([low, high], axis=2),
        actual, weights, frame=pd.DataFrame(index=np.arange(len(p))), basis="leave-one-out",
    )  # fmt: skip
    return Analysis(None, each)


def numbers_of(analysis):
    """Return every number that is a mean or a proportion, without errors and counts of rows."""
    training, thresholds = analysis.training, make_thresholds(analysis)
    decided = training.decided
    return {
        "scores": list(training.scores[1:]),
        "baseline": list(analysis.score_frequencies(training)[1:]),
        "majority": analysis.describe_majority(training),
        "decided": [training.share_decided, decided["expected"], decided["error"]],
        "area": [thresholds["area"][0], thresholds["precision"], thresholds["share"]],
        "thresholds": [
            -1 if row[name] is None else row[name]
            for row in thresholds["rows"]
            for name in ("recall", "precision", "false", "error")
        ],
        "classes": [
            row[name]
            for row in make_confusion(analysis)["classes"]
            for name in ("recall", "precision", "decided")
        ],
        "headline": [make_headline(analysis)["error"][0], make_headline(analysis)["typical"][0]],
    }


def test_a_row_of_weight_three_is_three_rows_and_one_of_weight_zero_is_none():
    rng = np.random.default_rng(0)
    n = 120
    actual = rng.integers(0, 2, n)
    p = np.clip(0.5 + 0.3 * (actual - 0.5) + 0.2 * rng.normal(size=n), 0.02, 0.98).round(2)
    zones, times = rng.integers(-1, 2, n), rng.integers(0, 4, n)
    weighted = numbers_of(analysis_of(p, actual, times * 0.7, zones))
    rows = np.repeat(np.arange(n), times)
    repeated = numbers_of(analysis_of(p[rows], actual[rows], None, zones[rows]))
    assert weighted.pop("majority") == repeated.pop("majority")
    for name, values in weighted.items():
        assert values == pytest.approx(repeated[name], rel=1e-9), name


def test_rows_of_weight_zero_are_not_listed_as_misclassified():
    p, actual = np.array([0.1, 0.2, 0.8, 0.9, 0.3]), np.array([1, 1, 0, 1, -2])
    training = analysis_of(
        p, actual, np.array([0.0, 1.0, 2.0, 1.0, 1.0]), np.zeros(5, int)
    ).training
    assert training.find_misclassified().tolist() == [1, 2]


def test_the_calibration_curve_has_the_weights():
    rng = np.random.default_rng(1)
    actual, p = rng.integers(0, 2, 200), rng.uniform(0.05, 0.95, 200)
    zones = np.zeros(200, int)
    plain = make_scores_of(analysis_of(p, actual, None, zones))
    assert make_scores_of(analysis_of(p, actual, np.full(200, 3.0), zones)) == plain
    heavy = np.where((p > 0.5) == actual, 4.0, 1.0)
    assert make_scores_of(analysis_of(p, actual, heavy, zones)) != plain


def make_scores_of(analysis):
    from bayesknn.report.figures import draw_reliability

    each = analysis.training
    return str(draw_reliability(each.probabilities, each.actual, each.weights))


def test_equal_weights_have_the_errors_of_the_textbook():
    rng = np.random.default_rng(0)
    values, wrong = rng.normal(size=40), rng.random(40) < 0.2
    for scale in (1.0, 7.0):
        mean, error = average(values, np.full(40, scale))
        assert (mean, error) == (pytest.approx(values.mean()), pytest.approx(sem(values)))
        for hits in (wrong, np.zeros(40, bool), np.ones(40, bool)):
            exact = binomtest(int(hits.sum()), 40).proportion_ci(method="wilson")
            found = bound_proportion(hits, np.full(40, scale))
            assert found == pytest.approx((hits.mean(), *exact), abs=1e-12)


def test_weighted_errors_are_those_of_resampling():
    """Errors are drawn again and again, more often in one class, at weights of 1 and 6."""
    rng = np.random.default_rng(0)
    n, n_draws = 400, 4000
    weights, labels = np.where(np.arange(n) % 4, 1.0, 6.0), np.arange(n) % 2
    means, errors, inside = [], [], []
    for _ in range(n_draws):
        wrong = rng.random(n) < np.where(labels, 0.4, 0.1)
        mean, error = average(wrong, weights)
        _, low, high = bound_proportion(wrong, weights)
        means.append(mean)
        errors.append(error)
        inside.append(low <= np.average(np.where(labels, 0.4, 0.1), weights=weights) <= high)
    # Of 4,000 draws the standard deviation is known to 1.1 %, a coverage of .95 to .0034.
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)
    assert np.mean(inside) > 0.95 - 5 * 0.0034


@pytest.fixture(scope="module", params=["pseudo", "pooled"])
def fitted(request):
    """Analyse a balanced table with a prior of .1 and .9."""
    table = two_columns(160).assign(x=lambda frame: frame["x"] - frame["y"])
    settings = {
        "pseudo": QUICK,
        "pooled": {"members": ("discriminant", "evidence"), "random_state": 0},
    }
    settings = {**settings[request.param], "class_prior": PRIOR}
    return table, analyse(table, "y", table[:50], model=request.param, settings=settings)


def test_a_class_prior_weighs_rows_to_its_proportions(fitted):
    table, analysis = fitted
    y, classifier = table["y"].to_numpy(), analysis.classifier
    wrong = classifier.loo_proba_.argmax(axis=1) != y
    rates = np.array([wrong[y == g].mean() for g in range(2)])
    assert analysis.training.scores.error == pytest.approx(rates @ [0.1, 0.9])
    losses = -np.log(classifier.loo_proba_[np.arange(len(y)), y])
    means = np.array([losses[y == g].mean() for g in range(2)])
    assert analysis.training.scores.log_loss == pytest.approx(means @ [0.1, 0.9])
    # Whatever the proportions of the test rows.
    test = analysis.test
    wrong = test.winners != test.actual
    rates = np.array([wrong[test.actual == g].mean() for g in range(2)])
    assert test.scores.error == pytest.approx(rates @ [0.1, 0.9])
    assert analysis.score_frequencies(analysis.training).error == pytest.approx(0.1)
    assert "errs in 10.0" in analysis.describe_majority(analysis.training)


def test_the_first_line_says_that_scores_are_weighted(fitted):
    _, analysis = fitted
    sentence = (
        "every score here is weighted: each class has the proportion that was given as "
        "class_prior (0 10.0 %, 1 90.0 %)"
    )
    assert describe(analysis)[0].endswith(sentence)
    found = json.loads(json.dumps(summarise(analysis)))
    assert found["weights"] == sentence
    assert found["class_prior"] == pytest.approx(PRIOR)
    page = render_report(analysis, source="t", command="", files={})
    assert f"E{sentence[1:]}." in page[: page.index("<h2>")]
    plain = analyse(two_columns(40), "y", settings=QUICK)
    assert summarise(plain)["weights"] == "" and summarise(plain)["class_prior"] is None
    assert "weighted" not in describe(plain)[0]


def test_a_prior_costs_nothing_where_it_is_right():
    """Scores under a prior are those of a table that has its proportions, within their errors."""
    rng = np.random.default_rng(0)

    def draw(sizes):
        y = np.repeat([0, 1], sizes)
        return rng.normal(size=(len(y), 2)) + 1.2 * y[:, None], y

    X, y = draw([400, 400])
    clf = BayesianKNeighborsClassifier("pseudo", class_prior=[0.1, 0.9], random_state=0).fit(X, y)
    found = analyse_fitted(clf, X, y, *draw([200, 1800]))
    training, test = found.training, found.test
    for name, values in (
        ("error", [1.0 * (each.winners != each.actual) for each in (training, test)]),
        ("log_loss", [losses_of(each) for each in (training, test)]),
    ):
        means, errors = zip(
            *(average(v, e.weights) for v, e in zip(values, (training, test), strict=True)),
            strict=True,
        )
        assert means == pytest.approx([getattr(e.scores, name) for e in (training, test)])
        # A false alarm once in 1e5.
        assert abs(means[0] - means[1]) < 4.5 * np.hypot(*errors), name
    # Without weights the error of the training rows would be twice as large.
    assert np.mean(training.winners != training.actual) > 1.5 * training.scores.error


def losses_of(predictions):
    return -np.log(
        predictions.probabilities[np.arange(len(predictions.actual)), predictions.actual]
    )


def test_the_page_of_a_weighted_pool_has_its_own_score(tmp_path):
    table = two_columns(120)
    X, y = table[["x", "z"]], np.asarray(table["y"])
    weights = np.where(np.arange(120) % 3, 1.0, 8.0)
    clf = PooledNeighborsClassifier(("discriminant", "evidence"), random_state=0)
    clf.fit(X, y, sample_weight=weights)
    analysis = analyse_fitted(clf, X, y)
    assert analysis.training.scores.log_loss == pytest.approx(-clf.loo_log_score_)
    losses = losses_of(analysis.training)
    assert abs(analysis.training.scores.log_loss - losses.mean()) > 1e-3
    assert describe(analysis)[0].endswith("training rows have the sample_weight of the fit")


def test_the_command_says_first_what_scores_are_for(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    two_columns(60).to_csv(train, index=False)
    two_columns(30, seed=1)[:20].to_csv(new, index=False)
    options = ("--model", "pseudo", "--max-neighbors", 8, "--beta-max", 4, "--no-compare")
    prior = ("--class-prior", "0=0.1", "--class-prior", "1=0.9")
    done = run("fit", train, "--target", "y", "--out", tmp_path / "out", *options, *prior)
    assert "class_prior (0 10.0 %, 1 90.0 %)" in done.stdout.splitlines()[0]
    done = run("predict", tmp_path / "out", new, "--out", tmp_path / "new-out")
    assert "rows of known class: 20 rows, error" in done.stderr
    assert "class_prior (0 10.0 %, 1 90.0 %)" in done.stderr
