"""What columns are taken for, and the lines that refuse what cannot be used."""

import numpy as np
import pandas as pd
import pytest

from bayesknn.report import analyse
from tests.report.tables import QUICK, notes, plan_columns, used

N = 40
Y = np.arange(N) % 2
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)


def table(**columns):
    return pd.DataFrame({**columns, "y": Y})


def test_numbers_words_and_what_says_nothing():
    frame = table(
        x=X,
        town=["a", "b"] * (N // 2),
        unit="cm",
        empty=np.full(N, np.nan),
        counter=np.arange(5, 5 + N),
        patient_id=RNG.permutation(1000)[:N],
        name=[f"person {i}" for i in range(N)],
    )
    plan = plan_columns(frame, "y")
    assert (plan.numeric_, plan.categorical_) == (["x"], ["town"])
    assert {name: reason.split(" (")[0] for name, reason in plan.dropped_.items()} == {
        "unit": "it has the same value in every row",
        "empty": "it has no value in any row",
        "counter": "it is a row number",
        "patient_id": "it is named like an identifier, and most of its values differ",
        "name": "it is named like an identifier, and most of its values differ",
    }
    assert len(notes(plan)) == 4
    assert notes(plan)[0] == "column 'unit' is left out: it has the same value in every row"


def test_the_user_knows_better():
    frame = table(x=X, counter=np.arange(N), code=np.arange(N) % 4)
    frame["code"] = frame["code"].astype(str).astype("str")
    plan = plan_columns(frame, "y", keep=["counter"], drop=["x"], categorical=["code"])
    assert (plan.numeric_, plan.categorical_) == (["counter"], ["code"])
    assert notes(plan) == []  # what was asked for need not be told


def test_a_thousand_categories_are_told():
    towns = [f"town {i % 1000}" for i in range(3000)]
    frame = pd.DataFrame({"x": RNG.normal(size=3000), "town": towns, "y": np.arange(3000) % 2})
    plan = plan_columns(frame, "y", indicators=True)
    assert plan.categorical_ == ["town"]
    assert notes(plan) == [
        "column 'town' has 1,000 categories: the 19 most common ones keep an indicator of their "
        "own, the others share one"
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            np.where(np.arange(N) == 3, np.nan, X),
            r"has missing values: 'a' in 1 of 40 rows \(first in row 4\)",
        ),
        (np.where(np.arange(N) == 3, np.inf, X), "holds inf in row 4, too large to measure"),
        (np.where(np.arange(N) == 3, -1e200, X), "holds -1e[+]200 in row 4, too large"),
        (["?" if i == 3 else str(i) for i in range(N)], r"in 1 row, words such as '\?' in row 4"),
        (["x" * 5000 if i == 3 else str(i) for i in range(N)], r"such as 'x{21}…x{10}' in row 4"),
        (pd.timedelta_range("1h", periods=N), "neither numbers nor categories: pass --drop 'a'"),
        (["03/04/2024"] * N, "dates that cannot be read, such as '03/04/2024' in row 1: write"),
        (["3 Mar 24", "4. April 24"] * (N // 2), "dates that cannot be read"),
        (["2024-03-01"] * (N - 1) + ["soon"], f"read, such as 'soon' in row {N}"),
        (["2024-13-01", "2024-03-01"] * (N // 2), "dates that cannot be read"),
        ([[1]] * N, "neither numbers nor categories"),
        (X + 1j, "neither numbers nor categories"),
    ],
)
def test_columns_that_are_refused(column, message):
    with pytest.raises(ValueError, match=message) as error:
        plan_columns(table(a=column, x=X), "y")
    assert "'a'" in str(error.value)
    assert "\n" not in str(error.value)
    assert used(plan_columns(table(a=column, x=X), "y", drop=["a"])) == ["x"]


def test_missing_values_pass_if_they_will_be_filled():
    frame = table(a=np.where(np.arange(N) == 3, np.nan, X))
    assert plan_columns(frame, "y", impute=True).numeric_ == ["a"]


def test_nothing_left_to_classify_by():
    with pytest.raises(ValueError, match="no column is left to classify by: 'u': it has the same"):
        plan_columns(table(u=1), "y")
    with pytest.raises(ValueError, match="no column is left to classify by: there is no other"):
        plan_columns(table(), "y")


def test_the_target_is_no_feature():
    with pytest.raises(ValueError, match="'y' is the target"):
        plan_columns(table(x=X), "y", drop=["y"])


def test_a_column_that_is_not_there_is_guessed():
    frame = pd.DataFrame({"species": [1], "length": [2]})
    with pytest.raises(ValueError, match="no column 'Species'; did you mean 'species'?"):
        plan_columns(frame, "Species")
    with pytest.raises(ValueError, match="no column 'LENGTH'; did you mean 'length'?"):
        plan_columns(frame, "LENGTH")
    with pytest.raises(ValueError, match="no column 'zzz'. The columns are 'species', 'length'"):
        plan_columns(frame, "zzz")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1]),
        ([0.0, 1.0, 0.0, 1.0], [0, 1, 0, 1]),
        (["b", "a", "b", "a"], ["b", "a", "b", "a"]),
        (["1", "x", "1", "x"], ["1", "x", "1", "x"]),
    ],
)
def test_classes_are_whole_numbers_or_words(target, expected):
    analysis = analyse(pd.DataFrame({"x": X, "y": target * 10}), "y", settings=QUICK)
    assert analysis.classifier.classes_[analysis.training.actual].tolist() == expected * 10
    assert analysis.training.rows.tolist() == list(range(1, N + 1))
    assert analysis.messages == []


def test_rows_without_a_class_keep_their_numbers():
    frame = pd.DataFrame({"x": X, "y": ["a", None, "b", None] * 10})
    analysis = analyse(frame, "y", settings={**QUICK, "max_neighbors": 8})
    assert analysis.training.rows.tolist() == list(range(1, N, 2))
    assert analysis.classifier.classes_[analysis.training.actual].tolist() == ["a", "b"] * 10
    without = "20 rows without a value in 'y' left out: 2, 4, 6, 8, 10 and 15 more"
    assert analysis.messages == [without]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1.5, 2.0, 1.5, 2.0], "holds 1.5, a decimal number: this looks like regression"),
        ([np.inf, 1.0, 1.0, 1.0], "holds inf, a decimal number"),
        ([1e200, 1e200, 1e300, 1e300], r"holds 1e\+200: a whole number that names a class has at"),
        (np.array([1, 1, 2**63, 2**63], np.uint64), r"holds 9.22337e\+18: a whole number"),
        (np.arange(100), "has 100 different values in 100 rows: this looks like regr"),
        ([None, None], "has no value in any row"),
        (["a", "b", "c"], "is different in every row"),
        (pd.date_range("2020", periods=4), "names no classes"),
    ],
)
def test_targets_that_name_no_classes(target, message):
    with pytest.raises(ValueError, match=message):
        analyse(pd.DataFrame({"y": target}), "y")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1.0, 2.0]}, "there is no column 'town'"),
        ({"x": ["a", "b"], "town": ["u", "v"]}, "held numbers in training; here it holds 'a'"),
        ({"x": ["1", "?"], "town": ["u", "v"]}, r"here it holds '\?' in row 2"),
        ({"x": [1.0, None], "town": ["u", "v"]}, "1 column has missing values: 'x' in 1 of 2 rows"),
        ({"x": [1.0, 2.0], "town": ["u", None]}, "'town' in 1 of 2 rows"),
        ({"x": [1.0, np.inf], "town": ["u", "v"]}, "'x' holds inf in row 2"),
    ],
)
def test_new_rows_that_do_not_fit(columns, message):
    with pytest.raises(ValueError, match=message):
        analyse(table(x=X, town=["u", "v"] * 20), "y", pd.DataFrame(columns), settings=QUICK)


def test_new_rows_that_fit_may_have_more_columns():
    new = pd.DataFrame({"more": [None], "x": [1], "town": ["u"]})
    analysis = analyse(table(x=X, town=["u", "v"] * 20), "y", new, settings=QUICK)
    assert len(analysis.test.rows) == 1


def test_new_rows_without_dates_where_training_had_some():
    train = table(day=pd.date_range("2024-01-01", periods=N)[::-1])
    new = pd.DataFrame({"day": ["soon", "2024-03-01"]}).astype("str")
    with pytest.raises(ValueError, match="'day' held dates in training; here it holds 'soon' in"):
        analyse(train, "y", new, settings=QUICK)
    new["day"] = pd.to_datetime(["2024-03-01"] * 2)
    assert len(analyse(train, "y", new, settings=QUICK).test.rows) == 2


def test_dates_are_numbers():
    frame = table(day=pd.date_range("1970-01-01", periods=N).tz_localize("UTC"))
    plan = plan_columns(frame, "y")
    assert plan.kinds_ == {"day": "date"}
    assert notes(plan) == ["column 'day' holds dates: they are measured in days"]
    measured = analyse(frame, "y", scale=False, settings=QUICK)
    assert measured.model.preparer_.transform(frame)["day"].tolist() == list(range(N))


def test_truth_values_are_a_kind_of_their_own():
    plan = plan_columns(table(x=X, b=["True", "False"] * (N // 2)), "y")
    assert plan.kinds_ == {"x": "number", "b": "truth"}
    assert (plan.numeric_, plan.categorical_, notes(plan)) == (["x"], ["b"], [])


@pytest.mark.parametrize("name", ["Id", "ID", "patient_id", "patientId", "id_number"])
def test_an_identifier_with_a_few_repeats_is_left_out(name):
    numbers = RNG.permutation(10**6)[:N]
    numbers[5:8] = numbers[0]
    plan = plan_columns(table(x=X, **{name: numbers}), "y")
    assert used(plan) == ["x"]
    assert plan.dropped_[name].startswith("it is named like an identifier, and most of its values")
    plan = plan_columns(table(x=X, **{name: numbers}), "y", keep=[name])
    assert (used(plan), notes(plan)) == (["x", name], [])


def test_what_is_called_an_identifier_and_used_is_told():
    frame = pd.DataFrame({"shop_id": np.arange(120) % 30, "acid": np.arange(120) % 40, "y": 1})
    frame["Individual ID"] = [f"N{i % 50}" for i in range(120)]
    plan = plan_columns(frame, "y")
    assert used(plan) == ["shop_id", "acid", "Individual ID"]
    assert notes(plan) == [
        "each of 2 columns ('shop_id', 'Individual ID') is named like an identifier and is used: "
        "pass --drop to leave it out, or --group if rows of the same value belong together"
    ]


def test_codes_with_leading_zeros_are_told():
    plan = plan_columns(table(zip=np.where(Y == 1, "01", "10").astype("str"), x=X), "y")
    assert plan.kinds_ == {"zip": "text", "x": "number"}
    assert notes(plan) == [
        "column 'zip' holds numbers with leading zeros: they are taken as categories"
    ]


def test_all_columns_with_missing_values_are_named_at_once():
    frame = table(a=np.where(np.arange(N) < 2, np.nan, X), b=X, c=np.where(Y == 1, np.nan, X))
    with pytest.raises(ValueError, match="2 columns have missing values") as error:
        plan_columns(frame, "y")
    assert "'a' in 2 of 40 rows (first in row 1); 'c' in 20 of 40 rows (first in row 2)" in str(
        error.value
    )
    assert "pass --drop=a,c, or pass --impute" in str(error.value)
    assert used(plan_columns(frame, "y", drop=["a,c"])) == ["b"]


def test_contradictions_are_refused():
    for option in ("keep", "categorical"):
        with pytest.raises(ValueError, match=f"'x' is named by --drop and by --{option}"):
            plan_columns(table(x=X, z=X), "y", drop=["x"], **{option: ["z", "x"]})
