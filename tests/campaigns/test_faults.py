"""Tests that run a small part of ``make faults``."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from campaigns.faults import FitFaults

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "fit"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        # FitFaults replaces render_report. Patching it here first restores it after the tests.
        patched.setattr("bayesknn.report.page.render_report", None)
        yield FitFaults(folder, np.random.default_rng(0))


def test_a_full_disk_leaves_the_earlier_result(fits):
    fits.fill_at_sizes((4_097,))
    assert fits.faults == []


@pytest.mark.mutant
def test_a_result_that_is_written_in_place_would_be_noticed(fits, monkeypatch):
    """A mutant writes to the result folder itself and leaves an incomplete result there."""
    from contextlib import contextmanager

    @contextmanager
    def write_in_place(path, *, force, own):
        path.mkdir(exist_ok=True)
        yield path

    monkeypatch.setattr("bayesknn.report.folder.write_folder", write_in_place)
    monkeypatch.setattr(fits, "faults", [])
    fits.fill_at_sizes((4_097,))
    assert any("neither old nor new" in fault for fault in fits.faults)


# This test runs with the slow tests only, because the mutant above already covers the same code.
@pytest.mark.slow
def test_interrupted_fits_leave_all_or_nothing(tmp_path):
    """The script runs in a separate process, because a browser's event loop handles Ctrl-C too."""
    script = """
import signal, sys
from pathlib import Path
import numpy as np
from campaigns.faults import FitFaults
made = FitFaults(Path(sys.argv[1]), np.random.default_rng(0))
made.kill_at_events(1)
made.signal_at_times("interrupts", signal.SIGINT, 1)
made.fill_at_sizes((4_097,))
made.two_at_once(1)
print(made.faults, sum(made.moments.values()))
"""
    folder = tmp_path / "fit"
    folder.mkdir()
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["[] 4"], done.stderr
