"""Kernels compile with or without a folder to cache them in."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from bayesknn._estimator import follow_stages
from bayesknn._utils.jit import kernel

# What a read-only installation without a home directory looks like: numba refuses every cache.
SCRIPT = """
import numba
plain = numba.njit
def refuse(function):
    raise RuntimeError("cannot cache function")
numba.njit = lambda cache=False, **options: refuse if cache else plain(**options)
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


# A disk that takes no more bytes: numba's files in it can be made, and not written.
FULL_DISK = """
import builtins, errno
written = builtins.open
def refuse(file, mode="r", *args, **options):
    if "w" in mode and ".nb" in str(file):
        refused.append(file)
        raise OSError(errno.ENOSPC, "No space left on device", str(file))
    return written(file, mode, *args, **options)
refused, builtins.open = [], refuse
import numpy as np
from bayesknn.graph import NeighborGraph
counts = dict(NeighborGraph.from_neighbors([[1, 0], ]).iterate_counts([0, 1], 2))
assert counts[1].tolist() == [[0, 2], [2, 0]] and refused
"""


NESTED = """
from bayesknn._utils.random import key_of_sweep
assert isinstance(key_of_sweep(np.uint64(1), np.uint64(2)), int)
"""


def test_kernels_work_where_the_disk_is_full(tmp_path):
    """One that calls others, too."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", f"{FULL_DISK}{NESTED}\nprint('done')"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "done", done.stderr


def test_numba_refuses_in_these_words_what_it_cannot_cache():
    """A function without a file, for which no cache can be found."""
    import numba

    names = {}
    exec("def successor(x):\n    return x + 1", names)
    with pytest.raises(RuntimeError, match="cannot cache function"):
        numba.njit(cache=True)(names["successor"])
    assert kernel(names["successor"])(1) == 2


def test_other_errors_are_not_swallowed(monkeypatch):
    import numba

    def refuse(**options):
        raise RuntimeError("something else")

    monkeypatch.setattr(numba, "njit", refuse)
    with pytest.raises(RuntimeError, match="something else"):
        kernel(lambda x: x)


def test_a_bar_is_shown_while_kernels_are_compiled(monkeypatch):
    """Whichever kernel it is: what was compiled before does not count."""
    shown = []

    @contextmanager
    def note(description):
        shown.append(description)
        yield
        shown.append("closed")

    monkeypatch.setattr("bayesknn._utils.jit.progress", note)
    names = {}
    exec("def successor(x):\n    return x + 1", names)
    successor = kernel(names["successor"])
    with follow_stages(None, None, None, 1):
        assert shown == []
        assert successor(1) == 2
        assert successor(1.0) == 2.0
        assert shown == ["Compiling, once after installation"]
    assert shown[1:] == ["closed"]
    with follow_stages(None, None, None, 1):
        assert successor(2) == 3
    assert len(shown) == 2
