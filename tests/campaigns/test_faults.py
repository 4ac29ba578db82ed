"""A small part of ``make faults``."""

import signal

import numpy as np
import pytest

from campaigns.faults import ChainFaults, FitFaults, fill_disk, kill


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults") / "fit"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        # Put back what is replaced there.
        patched.setattr("bayesknn.report.page.render_report", None)
        yield FitFaults(folder, np.random.default_rng(0))


def test_fits_in_trouble_leave_all_or_nothing(fits):
    fits.kill_at_events(1)
    fits.signal_at_times("interrupts", signal.SIGINT, 1)
    fits.fill_at_sizes((4_097,))
    fits.two_at_once(1)
    assert fits.faults == []
    assert sum(fits.moments.values()) == 4


def test_a_result_that_is_written_in_place_would_be_noticed(fits, monkeypatch):
    """The mutant: whoever writes takes the place at once, and leaves what it has when it ends."""
    from contextlib import contextmanager

    @contextmanager
    def write_in_place(path, *, force, own):
        path.mkdir(exist_ok=True)
        yield path

    monkeypatch.setattr("bayesknn.report.folder.write_folder", write_in_place)
    monkeypatch.setattr(fits, "faults", [])
    fits.fill_at_sizes((4_097,))
    assert any("neither old nor new" in fault for fault in fits.faults)


def test_chains_in_trouble_give_the_same_draws(tmp_path):
    (tmp_path / "chains").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("bayesknn.posterior.chains._ROUND_SECONDS", None)
        chains = ChainFaults(tmp_path / "chains", np.random.default_rng(0))
        chains.interrupt("kills", 2, signal.SIGKILL)
        chains.interrupt("kills as they write", 2, kill)
        chains.interrupt("interrupts", 2, signal.SIGINT)
        chains.interrupt("full disks", 2, fill_disk)
    assert chains.faults == []
    assert sum(chains.moments.values()) == 8
