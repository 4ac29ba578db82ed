"""One run of everything at the tiny budget, shared by the tests of this folder."""

import os

import locket
import pytest

from bayesknn.paper import run_paper


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # common to all workers: the second one finds the first's results
    with locket.lock_file(folder / "paper.lock"):
        return run_paper(folder / "paper-tiny", "tiny", n_jobs=1, verbose=0)
