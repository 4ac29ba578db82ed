"""Cells as people write them: read as in training, or rejected with the row."""

import numpy as np
import pandas as pd
import pytest

from bayesknn.report import TablePreparer, read_table
from bayesknn.tables.remarks import tell
from tests.report.tables import read_cells

N = 24
Y = [f"c{i % 2}" for i in range(N)]
NUMBERS = [f"{i}.{i % 7}5" for i in range(N)]


@pytest.fixture
def write(tmp_path):
    def write(name="t.csv", separator=",", **columns):
        path = tmp_path / name
        rows = [
            separator.join(columns),
            *(separator.join(row) for row in zip(*columns.values(), strict=True)),
        ]
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return path

    return write


def learn(path, form=None, **options):
    X, _, _ = read_table(path, **(form or {})).split("y")
    return TablePreparer(**options).fit(X)


@pytest.mark.parametrize("cell", ["-999", "-999.0", "-999.00"])
@pytest.mark.parametrize("given", ["-999", "-999.0"])
def test_a_number_for_missing_values_stands_for_its_value(write, cell, given):
    x = [cell if i % 5 == 0 else value for i, value in enumerate(NUMBERS)]
    path = write(x=x, y=Y)
    preparer = learn(path, {"missing": [given]}, keeps_missing=True)
    wanted = np.arange(N) % 5 == 0
    assert (preparer.measure(read_table(path))["x"].isna() == wanted).all()
    # And so in a frame of numbers.
    frame = pd.DataFrame({"x": [float(each) for each in x]})
    assert (preparer.measure(frame)["x"].isna() == wanted).all()


def test_the_thousands_of_training_are_those_of_a_new_file(write):
    train = write(separator=";", x=["1.065,20", "1.234", "999,5"] * 8, y=Y)
    preparer = learn(train)
    new = write("new.csv", ";", x=["1.234", "12"])
    assert preparer.measure(read_table(new))["x"].tolist() == [1234.0, 12.0]
    bad = write("bad.csv", ";", x=["1.5", "12"])
    with pytest.raises(
        ValueError, match="bad.csv: .*'x' held numbers with a decimal comma.* row 1"
    ):
        preparer.measure(read_table(bad))


def test_the_order_of_day_and_month_is_that_of_training(write):
    days = [f"{1 + i:02d}/03/2024" for i in range(N)]
    preparer = learn(write(day=days, y=Y))
    new = preparer.measure(read_table(write("new.csv", day=["03/06/2024"])))
    june = pd.Timestamp("2024-06-03") - pd.Timestamp("1970-01-01")
    assert new["day"].tolist() == [june.days]
    with pytest.raises(ValueError, match="'day' held dates, the day first, in training; .*'06/25/"):
        preparer.measure(read_table(write("new.csv", day=["03/06/2024", "06/25/2024"])))


def test_dates_in_two_ways_need_an_order(write):
    path = write(day=["03/06/2024", "04/07/2024"] * 12, y=Y)
    with pytest.raises(ValueError, match="--date-order day or --date-order month"):
        learn(path)
    by_day, by_month = (learn(path, date_order=each).measure(read_table(path))["day"][1]
                        for each in ("day", "month"))  # fmt: skip
    assert by_month - by_day == (pd.Timestamp("2024-03-06") - pd.Timestamp("2024-06-03")).days


def test_one_comma_among_points_is_named_with_its_row(write):
    x = [value if i != 16 else "1,2" for i, value in enumerate(NUMBERS)]
    path = write(separator=";", x=x, y=Y)
    message = (
        "'x' holds numbers and, in 1 row, numbers with a decimal comma such as '1,2' in row 17"
    )
    with pytest.raises(ValueError, match=message):
        learn(path)


def test_groups_of_digits_may_be_codes(write):
    path = write(x=[f"555 {100 + i} 200" for i in range(N)], y=Y)
    with pytest.raises(ValueError, match="'x' holds groups of digits such as '555 100 200'"):
        learn(path)
    assert learn(path, numeric=["x"]).measure(read_table(path))["x"][1] == 555100200
    assert learn(path, categorical=["x"]).kinds_ == {"x": "text"}
    # Read as a number where training had none of them, they would be some number or other.
    preparer = learn(write(x=NUMBERS, y=Y))
    with pytest.raises(ValueError, match="'x' held numbers.* here it holds '555 100 200' in row 1"):
        preparer.measure(read_table(write("new.csv", x=["555 100 200"])))


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        (["Oct 25 2002", "January 3, 2003"], ["2002-10-25", "2003-01-03"]),
        (["25 Oct 2002", "3. January 2003"], ["2002-10-25", "2003-01-03"]),
        (["25-Oct-2002 12:30", "3-jan-2003 1:05"], ["2002-10-25 12:30", "2003-01-03 01:05"]),
    ],
)
def test_months_by_name(write, cells, wanted):
    frame = read_cells(write(separator=";", day=cells, z=["1", "2"])).frame
    assert frame["day"].tolist() == [pd.Timestamp(each) for each in wanted]


@pytest.mark.parametrize(
    ("cells", "hours"),
    [(["12:30", "0:15"], [12.5, 0.25]), (["9:05:36 pm", "12:00 AM"], [21.0933, 0.0])],
)
def test_times_of_day_are_hours(write, cells, hours):
    path = write(time=cells)
    assert read_cells(path).frame["time"].tolist() == pytest.approx(hours, abs=1e-4)
    # More than a day is no time of day.
    assert read_cells(write(time=["25:10", "0:15"])).kinds["time"].name == "text"


def test_a_time_stamp_has_an_hour_and_a_weekday():
    stamps = pd.date_range("2024-01-01 06:00", periods=N, freq="31h")
    preparer = TablePreparer().fit(pd.DataFrame({"at": stamps}))
    points = preparer.transform(pd.DataFrame({"at": stamps.astype(str)}))
    np.testing.assert_allclose(points["at: hour"], stamps.hour, atol=1e-6)
    assert points["at: weekday"].tolist() == stamps.day_name().tolist()
    # Dates without a time have neither, and a missing one has no weekday.
    plain = TablePreparer().fit(pd.DataFrame({"at": stamps.normalize()}))
    assert list(plain.transform(pd.DataFrame({"at": stamps}))) == ["at"]
    gap = TablePreparer(keeps_missing=True).fit(pd.DataFrame({"at": [*stamps[1:], pd.NaT]}))
    last = gap.transform(pd.DataFrame({"at": [pd.NaT]})).iloc[0]
    assert last.isna().all()


def test_often_missing_numbers_have_an_indicator():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    many = pd.DataFrame({"x": np.where(np.arange(60) < 25, np.nan, x)})
    points = TablePreparer(impute=True, indicators=True).fit(many).transform(many)
    assert list(points) == ["x", "x: missing"]
    assert points["x: missing"].nunique() == 2 and points["x"].notna().all()
    few = pd.DataFrame({"x": np.where(np.arange(60) < 5, np.nan, x)})
    assert list(TablePreparer(impute=True).fit(few).transform(few)) == ["x"]


def test_windows_files_have_the_euro(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("price,y\n5 €,a\n7 €,b\n".encode("cp1252"))
    with pytest.raises(ValueError, match="--encoding cp1252"):
        read_table(path)
    assert read_cells(path, "cp1252").frame["price"].tolist() == [5, 7]
    # A byte that Windows' code page does not have.
    path.write_bytes(b"x,y\n\xe9,\x81\n")
    with pytest.raises(ValueError, match="--encoding latin-1"):
        read_table(path)


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv"])
def test_a_title_above_the_names(tmp_path, name):
    rows = [["Sales of 2024", None, None], [None] * 3, ["by me", None, None], ["x", "z", "y"]]
    rows += [[i, 2 * i, f"c{i % 2}"] for i in range(6)]
    path = tmp_path / name
    if name.endswith("xlsx"):
        pd.DataFrame(rows).to_excel(path, header=False, index=False)
    else:
        lines = [",".join("" if each is None else str(each) for each in row) for row in rows]
        path.write_text("\n".join(line.rstrip(",") for line in lines) + "\n")
    with pytest.raises(
        ValueError, match=r"fills 1 of 3 columns.* row 4 has the names: pass --head"
    ):
        read_table(path)
    assert list(read_table(path, header_row=4).frame) == ["x", "z", "y"]
    assert len(read_table(path, header_row=4).frame) == 6
    with pytest.raises(ValueError, match="has no row 99 with the names of columns"):
        read_table(path, header_row=99)


def test_codes_and_units_are_doubted(write):
    powers = ["3E5" if i == 4 else str(i) for i in range(N)]
    days = [f"202401{1 + i:02d}" for i in range(N)]
    mixed = [f"{'USD' if i % 2 else 'EUR'} {i * i}" for i in range(N)]
    shares = ["10%" if i % 2 else f"0.{i:02d}" for i in range(N)]
    path = write(powers=powers, days=days, mixed=mixed, shares=shares, y=Y)
    preparer = learn(path, keep=["days"])
    by_code = {(each.code, each.column) for each in preparer.remarks_ if each.severity == "warning"}
    wanted = {("codes", "powers"), ("codes", "days"), ("units", "mixed"), ("units", "shares")}
    assert by_code == wanted
    told = " ".join(tell(preparer.remarks_, "warning"))
    assert "'3E5' in row 5" in told and "'EUR' and 'USD'" in told and "--categorical" in told
    calm = learn(path, categorical=["powers"], drop=["days", "mixed", "shares"])
    assert tell(calm.remarks_, "warning") == []


def test_numbers_on_request(write):
    path = write(code=[f"{i:03d}" for i in range(N)], y=Y)
    assert learn(path, keep=["code"]).kinds_ == {"code": "text"}
    assert learn(path, numeric=["code"], keep=["code"]).kinds_ == {"code": "number"}
    with pytest.raises(
        ValueError, match="--numeric: column 'z' held numbers; here it holds 'many'"
    ):
        learn(write(z=["1"] * 23 + ["many"], y=Y), numeric=["z"])
