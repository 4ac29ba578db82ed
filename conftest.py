"""What holds for every test and doctest."""

import fcntl
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings
from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

import bayesknn
from campaigns.stale_kernels import forget_stale_kernels

# A slow machine is not a bug: time is measured in benchmarks, never asserted in tests.
settings.register_profile("bayesknn", deadline=None)
settings.load_profile("bayesknn")


def pytest_configure(config):
    """Let each kernel be compiled by one worker, and be read from the cache by the other."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        forget_stale_kernels(Path(bayesknn.__file__).parent)
        return
    compile_or_read = Dispatcher.compile

    def compile_or_wait(self, signature):
        if isinstance(self._cache, NullCache):
            return compile_or_read(self, signature)
        name = f"{self.py_func.__module__}.{self.__name__}.lock"
        path = os.path.join(self._cache.cache_path, name)
        # Kernels that it calls are compiled within: calls form no circle, so neither do waits.
        with global_compiler_lock, open(path, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_or_read(self, signature)

    Dispatcher.compile = compile_or_wait


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
