"""The table of losses: any order of classes, and errors that name the column."""

import numpy as np
import pandas as pd
import pytest

from bayesknn.model_file.predictions import read_losses

NAMES = ["01", "ill", "well"]
TABLE = "truth,well,01,ill\nill,10,2.5,0\n01,1,0,3\nwell,0,4,-1\n"


def write(folder, text):
    path = folder / "loss.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", [TABLE, TABLE.replace("truth", ""), TABLE.replace(",", ";")])
def test_rows_are_decisions_once_it_is_read(tmp_path, text):
    loss = read_losses(write(tmp_path, text), NAMES)
    np.testing.assert_array_equal(loss, [[0, 2.5, 4], [3, 0, -1], [1, 10, 0]])


def test_classes_that_are_numbers_and_parquet(tmp_path):
    path = tmp_path / "loss.parquet"
    pd.DataFrame({"truth": [1, 0], "0": [7, 0], "1": [0, 2]}).to_parquet(path)
    np.testing.assert_array_equal(read_losses(path, ["0", "1"]), [[0, 7], [2, 0]])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("well,01,ill\n", "well,1,ill\n", "header holds '1', and has to name each class"),
        ("truth,well", "truth,good", "header holds 'good', .*; the classes are 01, ill, well"),
        ("truth,well,01,ill\nill,10,2.5,0\n01,1,0,3\nwell,0,4,-1\n",
         "truth,well,01\nill,10,2.5\n01,1,0\nwell,0,4\n", "header lacks 'ill'"),
        ("\nill,", "\nsick,", "column 'truth' holds 'sick'"),
        ("\n01,", "\n1,", "column 'truth' holds '1'"),
        ("\n01,", "\n,", "column 'truth' holds ''"),
        ("\n01,", "\nill,", "column 'truth' holds twice or more 'ill'"),
        ("well,0,4,-1\n", "", "column 'truth' lacks 'well'"),
        ("2.5", "much", "column '01' holds 'much' where the truth is 'ill'; a loss is a finite"),
        ("2.5", "", "column '01' holds nothing where the truth is 'ill'"),
        ("2.5", "inf", "column '01' holds inf where the truth is 'ill'"),
        ("01,ill\n", "01,well\n", "two columns called 'well'"),
        (TABLE, "truth\n01\nill\nwell\n", "header lacks '01'"),
        (TABLE, "", "is empty"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_classes_is_named(tmp_path, before, after, message):
    assert before in TABLE
    with pytest.raises(ValueError, match=message) as caught:
        read_losses(write(tmp_path, TABLE.replace(before, after)), NAMES)
    assert "loss.csv" in str(caught.value)
    assert "\n" not in str(caught.value)
