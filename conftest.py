"""What holds for every test and doctest."""

import os
import signal
import sys
from pathlib import Path

# Every core has a worker of pytest: more threads in each only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

import bayesknn
from campaigns.stale_kernels import forget_stale_kernels

# A slow machine is not a bug: time is measured in benchmarks, never asserted in tests.
# `make test-full` draws more examples, and `make fuzz` thousands.
settings.register_profile("bayesknn", deadline=None, max_examples=40)
settings.register_profile("full", deadline=None, max_examples=200)
settings.register_profile("fuzz", deadline=None, max_examples=10_000)
settings.load_profile("bayesknn")


@pytest.fixture(autouse=True)
def _no_line_of_progress(monkeypatch):
    """Write no line about work that takes long because the machine is slow."""
    monkeypatch.setattr("bayesknn._utils.progress._LOG_DELAY", 1e6)


# Whose tests share something that takes long to make, or take long themselves.
LONG = (
    "tests/distributed/", "tests/paper/", "tests/test_cli", "tests/test_column_selection",
    "tests/report/test_page", "tests/predictive/test_joint", "tests/posterior/test_grid",
    "tests/posterior/test_ridge", "tests/posterior/test_transitions",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Put long modules first: whoever is done takes tests from the end of another's list."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_configure(config):
    """Forget machine code with old helpers inside, once, before the workers begin."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        forget_stale_kernels(Path(bayesknn.__file__).parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Turn a skip into a failure in CI, so that nothing is skipped by accident."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """Undo what shells do to background jobs: they make them deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def one_browser():
    """Close what tests/browser.py opened."""
    yield
    if browser := sys.modules.get("tests.browser"):
        browser.close_browser()
