"""Kernels compile with or without a folder to cache them in, and anew when sources change."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest
from numba.core import event

import bayesknn
import bayesknn._compiling
from bayesknn import _jit
from bayesknn._jit import kernel

# Without a locator numba finds no folder that it may write to, which is what a read-only
# installation without a home directory looks like to it.
SCRIPT = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import numpy as np
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
from bayesknn.model import BoltzmannModel
graph = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
"""
AGREE = "assert BoltzmannModel(graph, 2).agreement(np.array([0, 0, 1, 1, 1]), 1) == 3"
DRAW = """
for method in ("gibbs", "swendsen-wang", "perfect"):
    assert sample_labels(graph, 1.0, 1, 3, method, random_state=0).shape == (1, 5)
"""


# A decorator makes all kernels; to compile the samplers takes half a minute.
@pytest.mark.parametrize("use", [AGREE, pytest.param(DRAW, marks=pytest.mark.slow)])
def test_kernels_work_where_nothing_can_be_cached(use):
    command = [sys.executable, "-c", f"{SCRIPT}{use}\nprint('done')"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


def test_numba_does_refuse_there(monkeypatch):
    import numba.core.caching as caching

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    import numba

    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(lambda x: x)
    assert kernel(lambda x: x + 1)(1) == 2


def test_other_errors_are_not_swallowed(monkeypatch):
    import numba

    def refuse(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", refuse)
    with pytest.raises(RuntimeError, match="something else"):
        kernel(lambda x: x)


HELPER = """
from bayesknn._jit import kernel
STEP = {step}
@kernel
def _move(x):
    return x + {move}
"""
PROBE = """
from bayesknn import _inner
from bayesknn._between import _move, STEP
from bayesknn._jit import kernel
@kernel
def _probe(x):
    return STEP * _move(x) + _inner.OFFSET
if __name__ == "__main__":
    print(_probe(10), sum(_probe.stats.cache_hits.values()))
"""


def test_an_edit_of_an_imported_module_is_noticed(tmp_path):
    """Helpers are compiled into a kernel: what is cached must not outlive them."""
    package = tmp_path / "bayesknn"
    shutil.copytree(
        Path(bayesknn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )

    def write(step, move, offset, other=0):
        # _probe imports _between, which imports _helper: two steps away.
        (package / "_helper.py").write_text(HELPER.format(step=step, move=move))
        (package / "_between.py").write_text(
            "from bayesknn._helper import (\n    _move, STEP,\n)\n"
        )
        (package / "_inner.py").write_text(f"OFFSET = {offset}\n")
        (package / "_other.py").write_text(f"NOTHING = {other}\n")
        (package / "_probe.py").write_text(PROBE)

    def run():
        done = subprocess.run(
            [sys.executable, "-m", "bayesknn._probe"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    write(1, 1, 0)
    assert run() == [11, 0]
    write(1, 1, 0, other=1)
    assert run() == [11, 1], "a module that the kernel does not import is no reason to compile"
    write(1, 2, 0)
    assert run() == [12, 0]
    write(3, 2, 0)
    assert run() == [36, 0]
    write(3, 2, 1)
    assert run() == [37, 0]


def test_a_bar_is_shown_while_kernels_are_compiled(monkeypatch):
    monkeypatch.setattr("bayesknn._progress.DELAY", 0.05)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    shown = []

    class Bar:
        def __init__(self, description, total, delay):
            shown.append(description)

        def advance(self, steps):
            shown.append(steps)

        def close(self):
            shown.append("closed")

    monkeypatch.setattr("bayesknn._progress._DelayedBar", Bar)
    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: 2 * inner(x))
    assert outer(3) == 8
    assert outer(4) == 10
    for _ in range(200):
        if "closed" in shown:
            break
        time.sleep(0.05)
    # The compilation inside the other is not counted.
    assert shown == ["Compiling, once; kernels done:", 1, "closed"]


def test_a_constant_argument_compiles_nothing_of_its_own():
    """Numba would compile ``inner`` for n = 0, too, where a caller's n starts from there."""

    @kernel
    def inner(n):
        return n + 1

    @kernel
    def outer(m):
        n = 0
        for _ in range(m):
            n = inner(n)
        return n

    compiled = watch_compilation(lambda: outer(3))
    assert compiled == [("outer", (numba.int64,)), ("inner", (numba.int64,))]
    assert outer(3) == 3


def watch_compilation(call):
    """Functions of this module that a call compiles, and for which arguments."""
    seen = []

    class Listener(event.Listener):
        def on_start(self, e):
            function = e.data["dispatcher"].py_func
            if function.__module__ == __name__:
                seen.append((function.__name__, e.data["args"]))

        def on_end(self, e):
            pass

    with event.install_listener("numba:compile", Listener()):
        call()
    return seen


def test_a_helper_is_compiled_once_for_its_callers():
    @kernel
    def helper(x):
        return x * x

    @kernel
    def first(x):
        return helper(x) + 1

    @kernel
    def second(x):
        return helper(x) + helper(x + 1.0)

    names = [name for name, _ in watch_compilation(lambda: (first(2.0), second(3.0)))]
    assert names == ["first", "helper", "second"]
    assert (first(2.0), second(3.0)) == (5.0, 25.0)
    assert helper.signatures == [], "Python can call it, too, but has not yet"
    assert helper(3.0) == 9.0
    assert helper.signatures == [(numba.float64,)]


def test_a_helper_may_raise_with_values():
    """What it raises is looked up in an environment of its own, which its callers have to know."""

    @kernel
    def helper(x):
        if x < 0:
            raise ValueError("below zero", x)
        return x

    @kernel
    def outer(x):
        return helper(x) + 1

    assert outer(1) == 2
    with pytest.raises(ValueError, match=r"\('below zero', -3\)"):
        outer(-3)


def test_with_another_numba_helpers_are_compiled_as_usual(monkeypatch):
    monkeypatch.setattr(_jit, "_KNOWS_NUMBA", False)

    @kernel
    def helper(x):
        return x * x

    @kernel
    def outer(x):
        return helper(x) + 1

    assert outer(2.0) == 5.0
    assert helper.signatures == [(numba.float64,)]
