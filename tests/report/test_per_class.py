"""Recall and confusions of each class, counted by hand."""

import shlex

import numpy as np
import pandas as pd
import pytest

from bayesknn.model_file.predictions import Predictions
from bayesknn.report.analysis import Analysis, analyse, describe
from bayesknn.report.page import make_confusion, make_headline


def left_out(actual, winners, n_classes, likeliest=0.9, zones=None):
    """Return what an analysis knows of its leave-one-out probabilities, and nothing else."""
    actual, winners = np.asarray(actual), np.asarray(winners)
    rest = (1 - likeliest) / (n_classes - 1)
    probabilities = np.full((len(actual), n_classes), rest)
    probabilities[np.arange(len(actual)), winners] = likeliest
    names = np.array([f"class {g}" for g in range(n_classes)], dtype=object)
    # The interval of a zone's class lies above all others, where there is a zone.
    low = np.full(probabilities.shape, 0.0)
    high = np.full(probabilities.shape, 1.0 if zones is None else 0.5)
    for i, zone in enumerate(() if zones is None else zones):
        high[i] = 0.5 if zone >= 0 else 1.0
        low[i, zone], high[i, zone] = (0.6, 0.9) if zone >= 0 else (0.0, 1.0)
    training = Predictions(
        names, probabilities, np.stack([low, high], axis=2), actual, basis="leave-one-out",
        frame=pd.DataFrame(index=np.arange(1, len(actual) + 1)), actual_names=names[actual],
    )  # fmt: skip
    return Analysis(None, training)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([88, 12], "recall: 12 of 12 rows of class 1 found"),
        ([87, 13], ""),
        (
            [90, 5, 2, 3],
            "recall: 5 of 5 rows of class 1, 2 of 2 rows of class 2, 3 of 3 rows of class 3 found",
        ),
    ],
)
def test_what_is_rare_depends_on_the_number_of_classes(sizes, told):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    assert left_out(labels, labels, len(sizes)).describe_rare() == told


def test_one_rare_class():
    # 10 of 100 are of class 1: 4 of them are found, and 2 others are taken for it.
    actual = np.repeat([1, 0], [10, 90])
    winners = np.repeat([1, 0, 1, 0], [4, 6, 2, 88])
    assert left_out(actual, winners, 2).describe_rare() == "recall: 4 of 10 rows of class 1 found"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_to_do_about_a_class_of_which_no_row_is_decided(n_classes):
    # 10 of 200 are of class 0. Its probability is .08 in 7 of them and in 20 others, else .01.
    actual = np.concatenate([np.zeros(10, int), 1 + np.arange(190) % (n_classes - 1)])
    analysis = left_out(actual, np.where(actual == 0, 1, actual), n_classes)
    is_higher = np.isin(np.arange(200), [*range(7), *range(20, 40)])
    analysis.training.probabilities[:, 0] = np.where(is_higher, 0.08, 0.01)
    (advice,) = analysis.advise_rare()
    assert "no row of class 0 (5.0\xa0% of the rows) is decided" in advice
    assert "as much as 19 false alarms, 7 of 10 rows of class 0" in advice
    assert "are found and 20 of 190 others are taken for it" in advice and "--class-prior" in advice
    assert ("--threshold 'class 0=0.05'. From" in advice) == (n_classes == 2)
    assert ("--loss" in advice) == (n_classes > 2)


def test_the_command_advised_names_the_class_whole():
    analysis = left_out(np.repeat([1, 0], [10, 190]), np.zeros(200, int), 2)
    analysis.training.classes[1] = name = "it's a name of many words; " + "long " * 30
    (advice,) = analysis.advise_rare()
    words = shlex.split(advice.split("bayesknn predict ")[1].split(". From")[0])
    assert words == ["--threshold", f"{name}=0.05"]


def test_a_class_of_five_percent_that_no_column_shows():
    y = np.where(np.arange(400) % 20 == 0, "bad", "good")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 2)), columns=["a", "b"])
    settings = {"members": ("discriminant", "additive"), "random_state": 0}
    analysis = analyse(frame.assign(y=y), "y", model="pooled", settings=settings)
    bad = analysis.classifier.loo_proba_[:, 0] >= 0.05
    hits, alarms = bad[y == "bad"].sum(), bad[y == "good"].sum()
    (line,) = (each for each in describe(analysis) if each.startswith("No row of bad (5.0 %"))
    assert "predict --threshold bad=0.05. " in line and "as much as 19 false alarms" in line
    assert f"{hits} of 20 rows of bad are found and {alarms} of 380 others" in line
    assert make_headline(analysis)["doubts"][-1].replace("\xa0", " ")[1:] == line[1:]


def test_no_advice_where_rows_of_the_rare_class_are_decided_or_found():
    actual = np.repeat([1, 0], [10, 190])
    assert left_out(actual, actual, 2).advise_rare() == []
    decided = np.where(np.arange(200) == 0, 1, -1)
    assert left_out(actual, np.zeros(200, int), 2, zones=decided).advise_rare() == []
    assert len(left_out(actual, np.zeros(200, int), 2).advise_rare()) == 1


def test_nothing_is_rare_where_classes_are_alike():
    analysis = left_out([0, 1, 0, 1], [0, 1, 1, 1], 2)
    assert analysis.describe_rare() == ""
    assert analysis.describe_majority(left_out([0, 1, 1, 1], [0] * 4, 2).training).endswith(
        "errs in 75.0\xa0%"
    )


def test_the_majority_is_that_of_the_training_rows():
    analysis = left_out([0, 0, 1], [0, 0, 1], 2)
    test = left_out([1, 1, 0, 0], [0] * 4, 2).training
    test.actual[2] = -1
    assert analysis.describe_majority(test) == "always predicting class 0 errs in 75.0\xa0%"


def test_few_classes_have_a_matrix():
    analysis = left_out([0, 0, 1, 2, 2], [0, 1, 1, 2, 0], 3)
    [found] = make_confusion(analysis)["tables"]
    assert found["matrix"].tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    assert found["about"] == "5 training rows, each left out in turn"
    # Test rows come first; those of no known class or of one that training did not see are out.
    test = left_out([0, 0, 1, 2, 2], [1, 1, 1, 2, 0], 3).training
    test.actual, test.basis = np.array([0, -2, 1, -1, 2]), "new row"
    analysis.test = test
    on_test, again = make_confusion(analysis)["tables"]
    assert on_test["matrix"].tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
    assert on_test["about"] == "3 test rows"
    assert again["matrix"].tolist() == found["matrix"].tolist()


@pytest.mark.parametrize("n_classes", [13, 200])
def test_many_classes_have_their_largest_confusions(n_classes):
    actual = np.repeat(np.arange(n_classes), 5)
    winners = actual.copy()
    winners[5:9] = 0  # four of class 1 are taken for class 0
    winners[15] = winners[16] = 2  # two of class 3 for class 2
    winners[20:23] = 5, 6, 6
    analysis = left_out(actual, winners, n_classes)
    [found] = make_confusion(analysis)["tables"]
    assert found["matrix"] is None
    pairs = [(g["name"], h["name"], n, share) for g, h, n, share in found["pairs"]]
    assert pairs == [
        ("class 1", "class 0", 4, 0.8),
        ("class 3", "class 2", 2, 0.4),
        ("class 4", "class 6", 2, 0.4),
        ("class 4", "class 5", 1, 0.2),
    ]
    assert (found["n_listed"], found["n_wrong"]) == (9, 9)
    right = left_out(actual, actual, n_classes)
    assert make_confusion(right)["tables"][0]["pairs"] == []


def test_of_many_classes_those_come_first_of_which_least_is_found():
    actual = np.repeat(np.arange(30), 4)
    winners = actual.copy()
    winners[4 * 17 : 4 * 18] = 0
    analysis = left_out(actual, winners, 30)
    rows = make_confusion(analysis)["classes"]
    assert rows[0]["name"] == "class 17" and rows[0]["recall"] == 0
    assert len(rows) == 30
    few = left_out([0, 1, 2], [1, 1, 2], 3, zones=np.array([-1, 1, 2]))
    rows = make_confusion(few)["classes"]
    assert [row["decided"] for row in rows] == [0, 1, 1]
