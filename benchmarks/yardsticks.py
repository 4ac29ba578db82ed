"""Gibbs chains in plain C, compiled by gcc and called through ctypes."""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.labels.gibbs import list_edges, threshold_table

HERE = Path(__file__).parent
FLAGS = ["-O3", "-march=native"]


def compile_yardsticks() -> ctypes.CDLL:
    """Compile ``yardsticks.c`` into ``benchmarks/build`` and return the loaded library."""
    build = HERE / "build"
    build.mkdir(exist_ok=True)
    library = build / "yardsticks.so"
    source = HERE / "yardsticks.c"
    command = ["gcc", *FLAGS, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def c_chains(
    library: ctypes.CDLL, graph: NeighborGraph, beta: float, k: int, n_sweeps: int
) -> dict[str, Callable[[], np.ndarray]]:
    """Return functions that run two-class chains in C from the same labels, by name.

    The chain with incremental counts runs ``n_sweeps`` sweeps, the naive chains a fifth of that.
    """
    n = graph.n_points
    start = np.random.default_rng(0).integers(0, 2, n)
    edges = list_edges(graph, k)
    table, bases = threshold_table(beta / k, np.ones(2), edges.degrees, False)
    lists_of_points = [
        edges.points[first : first + degree]
        for first, degree in zip(edges.starts, edges.degrees, strict=False)
    ]
    slots = bases + [start[neighbors].sum() for neighbors in lists_of_points]
    points = np.concatenate(lists_of_points).astype(np.int32)
    starts = np.append(0, np.cumsum(edges.degrees)).astype(np.int32)
    sweeps, seed = ctypes.c_int(n_sweeps), ctypes.c_uint64(1)

    def naive(name, dtype):
        def run():
            labels = start.astype(dtype)
            lists = (_pointer(starts), _pointer(points), _pointer(labels))
            sweeps = ctypes.c_int(n_sweeps // 5)
            getattr(library, name)(n, ctypes.c_double(beta), k, *lists, sweeps, seed)
            return labels

        return run

    def lists():
        labels, here = start.astype(np.uint8), slots.astype(np.uint32)
        arrays = (table, starts, points, labels, here)
        library.gibbs_lists(n, *map(_pointer, arrays), sweeps, seed)
        return labels

    return {
        "naive C, bytes": naive("gibbs_naive_bytes", np.uint8),
        "naive C, ints": naive("gibbs_naive_ints", np.int32),
        "incremental C, lists": lists,
    }


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
