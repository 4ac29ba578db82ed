"""Every tutorial runs as it stands, and warns of nothing: in test-full and in ``make docs``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.glob("*.py"))


def test_there_are_tutorials():
    assert len(SCRIPTS) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_tutorial_runs(script, tmp_path):
    if "from mapie" in script.read_text(encoding="utf-8"):
        pytest.importorskip("mapie", reason="MAPIE comes with the extras docs and clients only")
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
        # The documentation does not warn of a space in a name.
        assert " " not in script.name
        first, title, rule = script.read_text(encoding="utf-8").splitlines()[:3]
        assert first == '"""' and set(rule) == {"="} and len(rule) >= len(title), script
