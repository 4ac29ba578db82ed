"""Kernels compile with or without a folder to cache them in."""

import subprocess
import sys

import pytest

from bayesknn._jit import kernel

# Without a locator numba finds no folder that it may write to, which is what a read-only
# installation without a home directory looks like to it.
SCRIPT = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import numpy as np
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
graph = NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]])
for method in ("gibbs", "swendsen-wang", "perfect"):
    assert sample_labels(graph, 1.0, 1, 3, method, random_state=0).shape == (1, 5)
print("drawn")
"""


def test_samplers_work_where_nothing_can_be_cached():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "drawn"


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
