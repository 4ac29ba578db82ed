"""Files as people have them: read right, or refused in one line that says where."""

import csv

import numpy as np
import pandas as pd
import pytest

from bayesknn.report import analyse
from bayesknn.report import read_table as read_whole
from bayesknn.tables import preparer
from bayesknn.tables.kinds import Text, Truth
from tests.report.tables import QUICK, read_cells, two_columns


def read_table(*arguments, kinds=None, **options):
    """Return all columns as they are read, by kinds that are known or learned."""
    return read_cells(*arguments, known=kinds, **options).frame


def read_kinds(path):
    """Return the kinds of the columns, and their names."""
    kinds = read_cells(path).kinds
    return kinds, {name: kind.name for name, kind in kinds.items()}


@pytest.fixture
def write(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_byte_order_mark_is_no_part_of_the_first_name(write):
    frame = read_table(write(b"\xef\xbb\xbfage,y\n1,a\n2,b\n"))
    assert list(frame) == ["age", "y"]
    assert frame["age"].tolist() == [1, 2]


def test_what_is_missing_and_what_is_a_word(write):
    frame = read_table(write("x,word\n1,NA\nNaN,None\n,null\n4,\n5,no\n"))
    assert frame["x"].isna().tolist() == [False, True, True, False, False]
    assert frame["word"].isna().tolist() == [True, False, True, True, False]
    assert frame["word"][1] == "None"


@pytest.mark.parametrize("words", ["True False", "TRUE FALSE", "true false"])
def test_truth_values_are_words(write, words):
    yes, no = words.split()
    path = write(f"a,b\n{yes},{yes}\n{no},\n")
    frame, (kinds, _) = read_table(path), read_kinds(path)
    assert frame["a"].tolist() == ["True", "False"]
    assert frame["b"][0] == "True" and pd.isna(frame["b"][1])
    # The same whether the kinds are found out or known, however a later file spells them.
    again = read_table(path, kinds=kinds)
    pd.testing.assert_frame_equal(again, frame)
    later = read_table(write("a,b\nTRUE,\ntrue,maybe\n"), kinds=kinds)
    assert later["a"].tolist() == ["True", "True"]
    assert later["b"].tolist()[1] == "maybe"


def test_a_later_file_has_the_kinds_of_the_first(write):
    kinds, names = read_kinds(write("town,x,code\n1,1,01\nb,2,10\n"))
    assert names == {"town": "text", "x": "number", "code": "text"}
    later = read_table(write("town,x,code\n1,1.5,10\n2,2,11\n"), kinds=kinds)
    assert later.to_dict("list") == {"town": ["1", "2"], "x": [1.5, 2.0], "code": ["10", "11"]}
    with pytest.raises(ValueError, match="'x' held numbers in training; here it holds 'many' in"):
        read_table(write("town,x,code\n1,many,10\n"), kinds=kinds)


def test_kinds_hold_for_parquet_and_csv_alike(tmp_path, write):
    kinds = {"t": Truth(), "code": Text()}
    frame = pd.DataFrame({"t": [True, False], "code": [1.0, None]})
    frame.to_parquet(tmp_path / "t.parquet")
    left = read_table(tmp_path / "t.parquet", kinds=kinds)
    right = read_table(write("t,code\nTRUE,1\nfalse,\n"), kinds=kinds)
    pd.testing.assert_frame_equal(left, right)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("zip,x\n01234,1\n98765,2\n", ["01234", "98765"]),
        ('zip,x\n"007",1\n12,2\n', ["007", "12"]),
        ("zip;x\n-01;1\n3;2\n", ["-01", "3"]),
        ("zip,x\n0,1\n0.5,2\n", [0.0, 0.5]),
        ("zip,x\n10,1\n100,02\n", [10, 100]),
    ],
)
def test_leading_zeros_make_codes(write, content, expected):
    assert read_table(write(content))["zip"].tolist() == expected


def test_dates_with_the_year_first_are_dates(write):
    path = write("a,b,c,d\n2024-03-01,2024/3/1,2024-03-01 12:30,03/01/2024\n,2024.03.02,,1\n")
    frame, (kinds, names) = read_table(path), read_kinds(path)
    assert frame["a"][0] == pd.Timestamp("2024-03-01") and pd.isna(frame["a"][1])
    assert frame["b"].tolist() == [pd.Timestamp("2024-03-01"), pd.Timestamp("2024-03-02")]
    assert frame["c"][0] == pd.Timestamp("2024-03-01 12:30")
    assert frame["d"].tolist() == ["03/01/2024", "1"]
    assert names == {"a": "date", "b": "date", "c": "date", "d": "text"}
    kinds = {name: kinds[name] for name in "ab"}
    with pytest.raises(ValueError, match="'a' held dates.* in training; here it holds 'soon' in"):
        read_table(write("a,b\nsoon,2024-01-01\n"), kinds=kinds)
    later = read_table(write("a,b\n2024-01-02,2024-01-01T00:00:00+02:00\n"), kinds=kinds)
    assert later["b"][0] == pd.Timestamp("2023-12-31 22:00")
    as_words = read_table(write("a,b\n2024-03-01,1\n"), text=["a"])
    assert as_words["a"].tolist() == ["2024-03-01"]


@pytest.mark.parametrize(
    "footer", ["Source: survey 2024,,", "Source: survey 2024", '"Source: survey 2024",NA,\n\n']
)
def test_a_footer_is_no_row(write, footer):
    table = read_cells(write(f"x,z,y\n1,2,a\n3,4,b\n{footer}\n"))
    assert table.frame.to_dict("list") == {"x": [1, 3], "z": [2, 4], "y": ["a", "b"]}
    assert table.notes == ["row 3 of table.csv is a footer and left out: 'Source: survey 2024'"]


def test_two_lines_of_footer_below_words(write):
    frame = read_table(write("name,y\nann,1\nbob,2\n\nNote: none\nSource: survey, 2024\n"))
    # Of the second line the comma makes two cells; it is no footer that stands alone.
    assert len(frame) == 4
    table = read_cells(write("name,y\nann,1\nbob,2\n\nNote: none\nSource: survey\n"))
    assert table.frame["name"].tolist() == ["ann", "bob"]
    assert [note.split(":")[0] for note in table.notes] == [
        "row 3 of table.csv is a footer and left out",
        "row 4 of table.csv is a footer and left out",
    ]


@pytest.mark.parametrize(
    "content",
    ["name,y\nann,1\nbob,\n", "x,y\n1,1\n3,\n", "x\n1\nend\n", "x,y\n1,2\nend,3\n"],
)
def test_rows_with_missing_cells_are_no_footer(write, content):
    table = read_whole(write(content))
    assert len(table.frame) == 2
    assert table.remarks == []


def test_columns_can_be_read_as_text(write):
    frame = read_table(write("code,x\n01,1\n02,2\n"), text=["code", "not there"])
    assert frame["code"].tolist() == ["01", "02"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a;b\n1,5;x\n-2;y\n", [1.5, -2.0]),
        ("a;b\n1.5;x\n-2.0;y\n", [1.5, -2.0]),
        ("a\tb\n1.5\tx\n-2\ty\n", [1.5, -2.0]),
        ('a,b\n1.5,"x, y"\n-2,"line\nbreak"\n', [1.5, -2.0]),
        ("a,b\r\n1.5,x\r\n-2,y\r\n", [1.5, -2.0]),
        ("a\n1.5\n-2\n", [1.5, -2.0]),
        ("a;b, in kg\n1,5;70,5\n-2,0;80,1\n", [1.5, -2.0]),
        ("a;b, in kg;c\n1.5;7;x\n-2.0;8;y\n", [1.5, -2.0]),
        ("a|b\n1.5|x\n-2|y\n", [1.5, -2.0]),
        ("a,b;c\n1.5,x\n-2,y\n", [1.5, -2.0]),
        ("a,b\r1.5,x\r-2,y\r", [1.5, -2.0]),
    ],
)
def test_separators_quotes_and_decimal_commas(write, content, expected):
    assert read_table(write(content))["a"].tolist() == expected


def test_the_separator_can_be_given(write):
    path = write("a:b;c\n1:2;3\n")
    assert list(read_table(path, separator=":")) == ["a", "b;c"]
    assert list(read_table(path)) == ["a:b", "c"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,y\n", "has a header but no rows"),
        (b"a,y\n1,caf\xe9\n", r"is not UTF-8: byte 0xe9 in line 2; .*--encoding cp1252"),
        (b"\xff\xfea\x00,\x00", "is UTF-16, not UTF-8: pass --encoding utf-16"),
        (b"a,b,a\n1,2,3\n", "has two columns called 'a', columns 1 and 3; rename one"),
        (b"a,y\n1,2\n1,2,3\n", "is not a CSV file: Expected 2 fields in line 3, saw 3"),
        (b"a,y\n1,2,3\n4,5,6\n", "has rows of more fields than the 2 names in its header"),
        (b"a,y\n1,\x00\n", "holds a zero byte in line 2, so it is not a CSV file"),
        (b"PAR1 but no more", "is not a readable Parquet file"),
    ],
)
def test_what_is_refused(write, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read_table(write(content))
    assert "\n" not in str(error.value)


def test_other_encodings_can_be_named(write):
    path = write("a,y\n1,café\n".encode("latin-1"))
    assert read_table(path, "latin-1")["y"].tolist() == ["café"]
    with pytest.raises(ValueError, match="there is no encoding called 'klingon'"):
        read_table(path, "klingon")
    for name, message in (
        ("punycode", "is not PUNYCODE"),  # and where, before Python 3.13
        ("undefined", "is not UNDEFINED; pass its encoding"),
        ("base64", "there is no encoding called 'base64'"),
        ("a\0", r"there is no encoding called 'a\\x00'"),
    ):
        with pytest.raises(ValueError, match=message):
            read_table(path, name)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"none.csv cannot be read: no such file or directory"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder; name the file in it"):
        read_table(tmp_path)


def test_a_column_without_a_name_is_called_after_its_place(write):
    assert list(read_table(write(",a,\n0,1,2\n"))) == ["column 1", "a", "column 3"]


def test_parquet_gives_what_csv_gives(tmp_path):
    frame = pd.DataFrame({"x": [0.5, 1.5], "w": ["a", "b"], "t": [True, False]}, index=[7, 9])
    frame["c"] = pd.Categorical(["u", "v"])
    frame.to_parquet(tmp_path / "table.parquet")
    frame.to_csv(tmp_path / "table.csv", index=False)
    left, right = (read_table(tmp_path / f"table.{kind}") for kind in ("parquet", "csv"))
    pd.testing.assert_frame_equal(left, right)
    assert left.index.tolist() == [0, 1]


def test_parquet_with_an_index_of_its_own_and_integers_with_gaps(tmp_path):
    frame = pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")}, index=["a", "b", "c"])
    frame.to_parquet(tmp_path / "table.parquet")
    read = read_table(tmp_path / "table.parquet")
    assert list(read) == ["x"]
    assert np.isnan(read["x"][1])


def test_the_first_lines_are_cut_once_for_each_separator(write, monkeypatch):
    real, cut = csv.reader, []
    monkeypatch.setattr(
        "bayesknn.tables.files.csv.reader",
        lambda lines, delimiter: cut.append(delimiter) or real(lines, delimiter=delimiter),
    )
    read_table(write("x,z,y\n1,2,a\n3,4,b\nSource: survey 2024,,\n"))
    assert sorted(cut) == ["\t", ",", ";", "|"]


def test_what_a_column_is_is_decided_once(tmp_path, monkeypatch):
    two_columns(60).assign(town=["a", "b"] * 30).to_csv(tmp_path / "t.csv", index=False)
    real, decided = preparer.learn_kinds, []

    def learn(frame, **options):
        decided.extend(frame)
        return real(frame, **options)

    monkeypatch.setattr(preparer, "learn_kinds", learn)
    train, test = (read_whole(tmp_path / "t.csv") for _ in range(2))
    analysis = analyse(train, "y", test, settings=QUICK)
    assert sorted(decided) == ["town", "x", "z"]
    assert analysis.preparer.kinds_ == {"x": "number", "z": "number", "town": "text"}
    assert train.frame.index.tolist() == list(range(1, 61))
