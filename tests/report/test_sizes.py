"""Tables that unpack to far more than their files hold."""

import gzip
import io
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesknn.tables import files
from bayesknn.tables.files import read_table

HEADER = (
    '<row r="1"><c t="inlineStr"><is><t>x</t></is></c><c t="inlineStr"><is><t>y</t></is></c></row>'
)


def sheet(rows, n=20):
    """Return an Excel file of n good rows and further ones in XML."""
    file = io.BytesIO()
    pd.DataFrame({"x": [1]}).to_excel(file, index=False)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    good = "".join(f"<row><c><v>{i}</v></c><c><v>{i % 2}</v></c></row>" for i in range(n))
    place = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    data = f'<worksheet xmlns="{place}"><sheetData>{HEADER}{good}{rows}</sheetData></worksheet>'
    members["xl/worksheets/sheet1.xml"] = data
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def parquet(columns):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def far_cell(row):
    return f'<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>'


FILES = {
    "equal rows.csv.gz": lambda: gzip.compress(b"x,y\n" + b"1,a\n" * 300_000),
    "far cells.xlsx": lambda: sheet("".join(map(far_cell, range(100, 180)))),
    "empty rows.xlsx": lambda: sheet('<row r="30"/>' * 100_000),
    "a row beyond the last.xlsx": lambda: sheet(far_cell(2**20 + 1)),
    "equal numbers.parquet": lambda: parquet(dict.fromkeys("abc", np.zeros(400_000, "i1"))),
    "equal words.parquet": lambda: parquet({"x": ["long " * 1000] * 4_000}),
}


@pytest.mark.parametrize("name", FILES)
def test_what_unpacks_to_far_more_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MOST_UNPACKED", 1_000_000, raising=False)
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    with pytest.raises(
        ValueError, match=r"unpacks to more than 1,\d+,\d+ bytes|has more than"
    ) as e:
        read_table(path)
    assert "\n" not in str(e.value) and name in str(e.value)


SCRIPT = """
import resource, sys
from bayesknn.tables.files import read_table
import openpyxl, pandas
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
print(read_table(sys.argv[1]).frame.shape)
"""


def test_a_single_far_cell_takes_no_room(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(sheet(far_cell(2**20)))
    done = subprocess.run([sys.executable, "-c", SCRIPT, path], capture_output=True, text=True)
    assert done.stdout == "(21, 3)\n", done.stderr


def test_a_long_footer_has_few_notes(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n" + "1,a\n2,b\n" * 9 + "#\n" * 500)
    notes = [each.text for each in read_table(tmp_path / "t.csv").remarks]
    assert len(notes) == 11 and notes[-1].startswith("490 more rows at the end of t.csv")
