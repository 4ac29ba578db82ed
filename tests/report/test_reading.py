"""Files as people have them: read right, or refused in one line that says where."""

import numpy as np
import pandas as pd
import pytest

from bayesknn.report import read_table


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


def test_truth_values_are_words(write):
    frame = read_table(write("a,b\nTrue,True\nFalse,\n"))
    assert frame["a"].tolist() == ["True", "False"]
    assert frame["b"][0] == "True" and pd.isna(frame["b"][1])


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
    ],
)
def test_separators_quotes_and_decimal_commas(write, content, expected):
    assert read_table(write(content))["a"].tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,y\n", "has a header but no rows"),
        (b"a,y\n1,caf\xe9\n", r"is not UTF-8: byte 0xe9 in line 2; .*--encoding latin-1"),
        (b"\xff\xfea\x00,\x00", "is UTF-16, not UTF-8: pass --encoding utf-16"),
        (b"a,b,a\n1,2,3\n", "has two columns called 'a', the 1st and the 3rd; rename one"),
        (b"a,y\n1,2\n1,2,3\n", "is not a CSV file: Expected 2 fields in line 3, saw 3"),
        (b"a,y\n1,2,3\n4,5,6\n", "has rows of more fields than the 2 names in its header"),
        (b"a,y\n1,\x00\n", "is not a CSV file: it holds a zero byte in line 2"),
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
