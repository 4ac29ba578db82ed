"""What holds for every test and doctest."""

import os
import signal

import pytest
from hypothesis import settings

# A slow machine is not a bug: time is measured in benchmarks, never asserted in tests.
settings.register_profile("bayesknn", deadline=None)
settings.load_profile("bayesknn")


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
