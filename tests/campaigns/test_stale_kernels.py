"""Test that cached kernels are deleted when a function compiled into them changes."""

import os
import subprocess
import sys

import pytest

from campaigns.stale_kernels import forget_stale_kernels

HELPER = """
from numba import njit
STEP = {step}
@njit
def _move(x):
    return x + {move}
"""
PROBE = """
from bayesknn import _inner
from bayesknn._between import _move, STEP
from numba import njit
@njit(cache=True)
def _probe(x):
    return STEP * _move(x) + _inner.OFFSET
if __name__ == "__main__":
    print(_probe(10), sum(_probe.dispatcher.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_an_edit_of_an_imported_module_is_noticed(tmp_path):
    package = tmp_path / "bayesknn"
    package.mkdir()
    (package / "__init__.py").touch()

    def write(step, move, offset, other=1):
        # _probe imports _between, which imports _helper, so the helper is an indirect import.
        (package / "_helper.py").write_text(HELPER.format(step=step, move=move))
        between = "from bayesknn._helper import (\n    _move, STEP,\n)\n"
        (package / "_between.py").write_text(between)
        (package / "_inner.py").write_text(f"OFFSET = {offset}\n")
        (package / "_other.py").write_text(f"NOTHING = {other}\n")
        (package / "_probe.py").write_text(PROBE)
        # numba compares the modification time of the kernel's own file. It is constant here, so
        # that only forget_stale_kernels can make the kernel compile again.
        os.utime(package / "_probe.py", (1, 1))
        return forget_stale_kernels(package)

    # Without this variable numba writes its cache next to the sources.
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}

    def run():
        done = subprocess.run(
            [sys.executable, "-m", "bayesknn._probe"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            # Python would use stale bytecode, because it compares file times in whole seconds.
            env=environment | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    write(1, 1, 0, other=0)
    assert run() == [11, 0]
    assert write(1, 1, 0) == ["_other.py"]
    assert run() == [11, 1], "a module that the kernel does not import is no reason to compile"
    assert write(1, 2, 0) == ["_between.py", "_helper.py", "_probe.py"]
    assert write(3, 2, 0) == ["_between.py", "_helper.py", "_probe.py"]
    assert write(3, 2, 1) == ["_inner.py", "_probe.py"]
    assert run() == [37, 0]
