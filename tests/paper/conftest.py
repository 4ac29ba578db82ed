"""A run of all items with the tiny budget, which the tests of this folder share."""

import os

import locket
import pytest

from bayesknn.paper import run_paper


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # all workers share this folder, so that one of them computes
    with locket.lock_file(folder / "paper.lock"):
        return run_paper(folder / "paper-tiny", "tiny", n_jobs=1, verbose=0)
