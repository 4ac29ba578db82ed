"""Every tutorial runs as it stands, and warns of nothing.

Here two of them do; the others in test-full, and in ``make docs``, which shows what they print.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))
EVERY_DAY = ("4_class_priors", "8_explaining_a_prediction")
RUN = [
    pytest.param(path, id=path.stem, marks=[] if path.stem in EVERY_DAY else pytest.mark.slow)
    for path in SCRIPTS
]


def test_there_are_tutorials():
    assert len(SCRIPTS) >= 6
    assert set(EVERY_DAY) <= {path.stem for path in SCRIPTS}


@pytest.mark.parametrize("script", RUN)
def test_tutorial_runs(script, tmp_path):
    # In an interpreter of its own, as the reader would run it, away from the repository.
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_tutorials_begin_with_their_titles():
    for script in SCRIPTS:
        first, title, rule = script.read_text(encoding="utf-8").splitlines()[:3]
        assert first == '"""' and set(rule) == {"="} and len(rule) >= len(title), script
