"""Ordinary tables that once gave wrong results without a word, and what is said of them now."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from bayesknn.cli import main
from bayesknn.report import analyse, read_table
from tests.report.tables import QUICK, plan_columns, read_cells, two_columns, used


def iris():
    frame = load_iris(as_frame=True).frame
    return frame.assign(target=np.array(["setosa", "versicolor", "virginica"])[frame["target"]])


def read(tmp_path, content, name="table.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = read_cells(path, **options)
    return table.frame, table.notes


# A row index ---------------------------------------------------------------------------------


def test_the_index_of_a_split_frame_does_not_leak(tmp_path):
    train_test_split(iris(), random_state=0)[0].to_csv(tmp_path / "train.csv")
    found = analyse(read_table(tmp_path / "train.csv"), "target", settings=QUICK)
    assert found.preparer.dropped_["column 1"].startswith("it is a row number")
    assert found.preparer.identifiers_ == ["column 1"]
    assert "column 1" not in used(found.preparer)
    assert any("'column 1' is left out" in note for note in found.messages)
    assert found.scores["leave-one-out"].log_loss > 0.03


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index", "row_number", "id", "Id"])
def test_row_numbers_are_left_out_whatever_their_order(tmp_path, name):
    frame = two_columns(30)
    frame.insert(0, name, np.random.default_rng(0).permutation(3000)[:30])
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert used(plan_columns(read_table(tmp_path / "t.csv"), "y")) == ["x", "z"]


def test_row_numbers_are_known_before_rows_without_a_class_are_left_out():
    # In order, whatever it is called: of all rows, though not of those with a class.
    frame = two_columns(90).assign(counter=np.arange(90), y=lambda t: t["y"].astype(float))
    frame.loc[frame.index % 3 > 0, "y"] = np.nan
    plan = plan_columns(frame, "y")
    assert plan.dropped_["counter"].startswith("it is a row number")
    # And of which some rows were taken out.
    numbered = two_columns(90).assign(counter=np.arange(90))
    assert used(plan_columns(numbered.drop(range(10, 40)), "y")) == ["x", "z"]


def test_whole_numbers_that_measure_stay():
    rng = np.random.default_rng(0)
    frame = two_columns(40).assign(age=rng.integers(20, 90, 40), price=rng.permutation(9999)[:40])
    plan = plan_columns(frame, "y")
    assert used(plan) == ["x", "z", "age", "price"]


def test_a_column_that_gives_the_class_away_is_named():
    frame = iris()
    labels = np.unique(frame["target"], return_inverse=True)[1]
    told = frame.assign(code=[f"c{g}" for g in labels], shuffled=range(150))
    found = analyse(told, "target", keep=["shuffled"], settings=QUICK)
    assert found.warnings[0] == (
        "each of 2 columns ('code', 'shuffled') alone predicts 'target' all but perfectly: make "
        "sure that it is known before the class is, or pass --drop=code --drop=shuffled"
    )
    target = np.random.default_rng(0).permutation(frame["target"])
    found = analyse(told.assign(target=target), "target", keep=["shuffled"], settings=QUICK)
    assert not [text for text in found.warnings if "alone predicts" in text]
    found = analyse(told.drop(columns="shuffled"), "target", settings=QUICK)
    assert found.warnings[0] == (
        "column 'code' alone predicts 'target' all but perfectly: make sure that it is known "
        "before the class is, or pass --drop=code"
    )


def test_a_rare_class_that_nobody_finds_is_not_given_away():
    labels = (np.arange(1000) % 200 == 7).astype(int)
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=1000), "y": labels})
    found = analyse(frame, "y", settings={**QUICK, "max_neighbors": 4})
    assert not [text for text in found.warnings if "alone predicts" in text]


# Numbers as people write them ----------------------------------------------------------------

PRICES = """price,share,euros,plain,y
"12,345.67",12.5%,"1.065,20",1.5,a
"$1,000",7%,"3,10 €",2,b
-$3.50,0.1%,"-2.000.000,5",3e1,a
"""


def test_numbers_as_people_write_them(tmp_path):
    frame, notes = read(tmp_path, PRICES)
    assert frame["price"].tolist() == [12345.67, 1000.0, -3.5]
    assert frame["share"].tolist() == [12.5, 7.0, 0.1]
    assert frame["euros"].tolist() == [1065.2, 3.1, -2000000.5]
    assert frame["plain"].tolist() == [1.5, 2.0, 30.0]
    assert notes == [
        "numbers were read in the columns 'price' ('12,345.67' as 12345.67), 'share' ('12.5%' as "
        "12.5), 'euros' ('1.065,20' as 1065.2)"
    ]


@pytest.mark.parametrize(
    ("content", "expected", "note"),
    [
        ('x,z,y\n"1,234",a,1\n"2,500",b,2\n', 1234, "as 1234, not as 1.234"),
        ("x;z;y\n1,234;a;1\n2,500;b;2\n", 1.234, "as 1.234, not as 1234"),
        ("x;z;y\n1,234;a;1.5\n2,500;b;2.5\n", 1234, "as 1234, not as 1.234"),
        ('x,z,y\n1.065,"0,5",1\n2.500,"1,5",2\n', 1065, "as 1065, not as 1.065"),
        ("x,z,y\n1.065,0.5,1\n2.500,1.5,2\n", 1.065, None),
        ("x;z;y\n12,5;a;1\n2,50;b;2\n", 12.5, None),
        ("x,z,y\n1 234,a,1\n12 500,b,2\n", 1234, "('1 234' as 1234)"),
    ],
)
def test_what_could_be_read_in_two_ways_is_told(tmp_path, content, expected, note):
    frame, notes = read(tmp_path, content)
    assert frame["x"][0] == expected
    notes = [each for each in notes if "'x'" in each]
    assert len(notes) == (note is not None) and all(note in each for each in notes)


def test_numbers_written_in_two_ways_and_words_among_them(tmp_path):
    mixed, _ = read(tmp_path, 'x,y\n"1,234.5",a\n"1.234,5",b\n')
    assert mixed["x"].tolist() == ["1,234.5", "1.234,5"]
    frame, _notes = read(tmp_path, "x,y\n" + '"1,234.5",a\n$7,b\n' * 5 + "many,a\n")
    with pytest.raises(ValueError, match="column 'x' holds numbers and, in 1 row, words such as"):
        plan_columns(frame, "y")


@pytest.mark.parametrize(
    ("first", "second", "day"),
    [
        ("28/01/2023", "03/02/2023", "2023-01-28"),
        ("1/28/2023", "2/3/2023", "2023-01-28"),
        ("28.1.2023 12:30", "03.02.2023 1:05", "2023-01-28 12:30"),
    ],
)
def test_dates_whose_order_is_clear(tmp_path, first, second, day):
    content = f"when,y\n{first},a\n{second},b\n,a\n"
    frame, notes = read(tmp_path, content)
    known = read_cells(tmp_path / "table.csv").kinds
    assert frame["when"][0] == pd.Timestamp(day) and frame["when"][1].month == 2
    which = "month" if first.startswith("1/") else "day"
    assert notes == [f"column 'when' holds dates such as {first!r}: the {which} is first"]
    # Where it is not, the order is that of training.
    later, _ = read(tmp_path, "when\n03/04/2023\n", known={"when": known["when"]})
    assert later["when"][0].month == (3 if which == "month" else 4)


def test_dates_whose_order_is_not_clear_are_words(tmp_path):
    for dates in (("03/04/2023", "05/06/2023"), ("13/04/2023", "04/13/2023")):
        frame, _ = read(tmp_path, "when\n{}\n{}\n".format(*dates))
        assert frame["when"].tolist() == list(dates)


# Dirty labels and copies ---------------------------------------------------------------------


def test_classes_that_differ_in_spelling_are_named():
    frame = two_columns(40).assign(y=["yes", "Yes ", "no", "no"] * 10)
    found = analyse(frame, "y", settings=QUICK)
    assert found.warnings[0] == (
        "the classes 'Yes ', 'yes' of 'y' differ only in case or spaces: they are taken as 2 "
        "classes; as one it would have 20 rows"
    )
    frame.loc[0, "y"] = "YES"
    with pytest.raises(ValueError, match="one row, 'YES', .*; 'YES', 'Yes ', 'yes' differ only"):
        analyse(frame, "y", settings=QUICK, rare="error")


def test_copies_of_rows_are_counted():
    frame = two_columns(40)
    frame = pd.concat([frame, frame.iloc[:7]], ignore_index=True)
    settings = {**QUICK, "max_neighbors": 8}

    def problems(frame):
        """Return what is said of the table, without what the classifier says of itself."""
        analysis = analyse(frame, "y", settings=settings)
        own = analysis.classifier.diagnostics_["warnings"]
        return [text for text in analysis.warnings if text not in own]

    (doubt,) = problems(frame)
    assert doubt.startswith("7 of 47 rows are copies of another row, class included")
    # The same values of another class are no copy, and categories repeat by chance.
    assert problems(frame.assign(y=np.arange(47) % 13 % 3)) == []
    labels = np.random.default_rng(0).integers(0, 2, 40)
    few = pd.DataFrame({"x": ["a", "b"] * 20, "z": ["u", "v", "w", "u"] * 10, "y": labels})
    assert problems(few) == []


# Other files ---------------------------------------------------------------------------------


def test_excel_and_compressed_files_are_read(tmp_path):
    frame = pd.DataFrame(
        {
            "x": [0.5, None, 2.0],
            "price": ["$1,234.50", "7", None],
            "town": ["a", "b", "b"],
            "when": pd.to_datetime(["2024-01-31", "2024-02-01", None]),
            "y": [True, False, True],
        }
    )
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        frame.to_excel(book, sheet_name="one", index=False)
        frame.to_excel(book, sheet_name="two", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    excel, text = read_cells(tmp_path / "t.xlsx"), read_cells(tmp_path / "t.csv.gz")
    note = "the sheet 'one' of t.xlsx is read, not 'two' (--sheet reads another)"
    assert excel.notes == [note, *text.notes]
    excel, text = (table.frame.reset_index(drop=True) for table in (excel, text))
    assert text["price"].tolist()[:2] == [1234.5, 7.0]
    assert text["when"][0] == pd.Timestamp("2024-01-31")
    pd.testing.assert_frame_equal(excel, text, check_dtype=False)


def workbook(*rows):
    content = io.BytesIO()
    pd.DataFrame(rows).to_excel(content, header=False, index=False)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"x": 1}]', "is JSON, which is not read: save the table as .csv"),
        ('\n {"x": [1]}', "is JSON"),
        (b"%PDF-1.7 ...", "is a PDF document"),
        (b"<stata_dta><header>", "is a Stata file"),
        ("@RELATION iris\n@ATTRIBUTE x REAL\n", "is an ARFF file"),
        (b"\x72\x02\x01\x00\xb2\n", "holds a zero byte in line 1, so it is not a CSV file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", r"is an old Excel file \(.xls\), which is not read"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"PK\x03\x04 and no more", "is an archive, and no readable Excel file"),
        (b"\x1f\x8b and no more", "cannot be decompressed"),
        (gzip.compress(b"x,y\n"), "has a header but no rows"),
        (workbook(["a", "b"]), "has a header but no rows"),
        (workbook(), "is empty"),
    ],
    # Compressed files hold the time, and a name must be the same in every worker.
    ids=lambda value: value if isinstance(value, str) else "bytes",
)
def test_other_files_are_told_what_they_are(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read(tmp_path, content, "file")
    assert "\n" not in str(error.value)


def test_excel_without_its_package_names_the_extra(tmp_path, monkeypatch):
    content = workbook(["x", "y"], [1, 2])
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(ModuleNotFoundError, match=r"need openpyxl.*bayesknn\[excel\]"):
            read(tmp_path, content, "t.xlsx")


def test_a_price_is_regression(tmp_path):
    frame, _notes = read(tmp_path, 'x,price\n1,"522,727.67"\n2,"1,000.50"\n')
    with pytest.raises(ValueError, match="holds 522727.67, a decimal number: this looks like reg"):
        analyse(frame, "price")


# What the terminal says ----------------------------------------------------------------------


def test_the_terminal_lists_the_classes_and_the_baseline(tmp_path):
    rng = np.random.default_rng(0)
    fraud = np.arange(200) < 10
    frame = pd.DataFrame({"x": rng.normal(size=200), "z": rng.normal(size=200)})
    frame.assign(y=np.where(fraud, "fraud", "ok")).to_csv(tmp_path / "t.csv", index=False)
    words = ["fit", tmp_path / "t.csv", "--target", "y", "--model", "pseudo", "--no-compare"]
    result = CliRunner().invoke(main, list(map(str, [*words, "--out", tmp_path / "out"])))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "Classes: ok (190), fraud (10)" in lines
    assert "Baseline: always predicting ok errs in 5.0 %" in lines
    assert any(line.startswith("Recall: 0 of 10 rows of fraud found") for line in lines)


# Predictions ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Fit the default model to a table with names, a code, gaps and a date, and its test table."""
    folder = tmp_path_factory.mktemp("people")
    rng = np.random.default_rng(0)
    frame = two_columns(80).assign(
        name=[f"person {i}" for i in range(80)],
        code=rng.permutation(80) // 2,
        town=np.array(["here", "there"])[rng.integers(0, 2, 80)],
    )
    frame.iloc[:60].to_csv(folder / "train.csv", index=False)
    new = frame.iloc[60:].reset_index(drop=True)
    new.loc[[0, 3], "x"], new.loc[2, "town"], new.loc[5, "y"] = np.nan, "nowhere", np.nan
    new.to_csv(folder / "new.csv", index=False)
    words = ["fit", "train.csv", "--target", "y", "--id", "code", "--no-compare", "--out", "out"]
    return folder, invoke(folder, *words), frame


def invoke(folder, *words):
    paths = [str(folder / w) if w in ("out", "p.csv") or w.endswith(".csv") else w for w in words]
    result = CliRunner().invoke(main, paths)
    assert result.exit_code == 0, result.output
    return result


def test_identifiers_stand_beside_the_predictions(people):
    folder, _, frame = people
    found = pd.read_csv(folder / "out" / "predictions.csv")
    assert list(found)[:6] == ["row", "name", "code", "basis", "actual", "class"]
    assert found["name"].tolist() == frame["name"].tolist()[:60]
    assert found["code"].tolist() == frame["code"].tolist()[:60]
    assert found["code"].nunique() < 60  # it would not have been known for an identifier


def test_training_rows_of_the_pool_have_intervals_and_zones(people):
    folder, result, _ = people
    found = pd.read_csv(folder / "out" / "predictions.csv", dtype=str)
    numbers = found[["low 0", "probability 0", "high 0"]].astype(float).to_numpy()
    assert (np.diff(numbers, axis=1) >= 0).all()
    assert set(found["zone"]) <= {"0", "1", "undecided"} and len(set(found["zone"])) > 1
    assert found["probability 0"].str.fullmatch(r"[01]\.\d{6}").all()
    assert "of the 60 training rows are decided: the 95 % interval of one class" in result.stdout


def test_predict_scores_and_tells_what_was_filled_in(people):
    folder, _, frame = people
    result = invoke(folder, "predict", "out", "new.csv", "--out", "p.csv")
    assert "column 'x' has no value in 2 rows: filled with its mean" in result.stderr
    assert (
        "column 'town' holds categories that training did not see in 1 row, such as 'nowhere'"
        in result.stderr
    )
    assert "rows of known class: 19 rows, error " in result.stderr
    found = pd.read_csv(folder / "p.csv", dtype=str)
    assert found["name"].tolist() == frame["name"].tolist()[60:]
    assert found["actual"].isna().sum() == 1


def test_the_pool_is_asked_once(people, monkeypatch):
    from bayesknn import PooledNeighborsClassifier

    asked = []
    real = PooledNeighborsClassifier.predict_summary
    monkeypatch.setattr(
        PooledNeighborsClassifier,
        "predict_summary",
        lambda *args, **options: asked.append(len(args[1])) or real(*args, **options),
    )
    for other in ("predict_proba", "predict_interval"):
        monkeypatch.setattr(PooledNeighborsClassifier, other, lambda *_: pytest.fail("twice"))
    invoke(people[0], "predict", "out", "new.csv")
    # Two rows show that the model can predict.
    assert asked == [2, len(pd.read_csv(people[0] / "new.csv"))]


def test_the_pool_takes_a_class_prior(people):
    """An offset of the odds: rarer by a factor of nine, here."""
    folder, _, _ = people
    words = ["fit", "train.csv", "--target", "y", "--id", "code", "--no-compare", "--force"]
    prior = ["--class-prior", "0=0.9", "--class-prior", "1=0.1"]
    (folder / "prior").mkdir()
    invoke(folder, *words, *prior, "--out", str(folder / "prior"))
    before, after = (pd.read_csv(folder / place / "predictions.csv") for place in ("out", "prior"))
    odds = [p["probability 1"] / p["probability 0"] for p in (before, after)]
    middle = before["probability 1"].between(0.05, 0.95)
    np.testing.assert_allclose((odds[0] / odds[1])[middle], 9.0, rtol=1e-3)
