"""What holds for every test and doctest."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
SOURCE = ROOT / "src" / "bayesknn"

# A slow machine is not a bug: time is measured in benchmarks, never asserted in tests.
settings.register_profile("bayesknn", deadline=None)
settings.load_profile("bayesknn")


def pytest_configure(config):
    """Forget compiled kernels whose source changed anywhere.

    numba's disk cache looks at a kernel's own file only, so an edit in a module it imports
    would go unnoticed.
    """
    if hasattr(config, "workerinput"):
        return
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(path.read_bytes())
    stamp = ROOT / ".pytest_cache" / "kernels"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    for compiled in SOURCE.rglob("*.nb[ci]"):
        compiled.unlink(missing_ok=True)
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(digest.hexdigest())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Turn a skip into a failure in CI, so that nothing is skipped by accident."""
    report = yield
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report
