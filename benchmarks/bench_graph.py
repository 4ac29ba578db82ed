"""Times of the neighbour graph and of its queries, against scikit-learn and faiss."""

import time
from collections.abc import Callable

import numpy as np
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from threadpoolctl import threadpool_limits

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from benchmarks.harness import Report, interleave

N_JOBS = 2


def mixture(n: int, p: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(0.0, 2.0, size=(10, p))
    return centres[rng.integers(10, size=n)] + rng.normal(size=(n, p))


def clock(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def scikit_learn(points: np.ndarray, algorithm: str) -> None:
    # scikit-learn returns the point itself as a neighbour, so 101 neighbours include 100 others.
    neighbors = NearestNeighbors(n_neighbors=101, algorithm=algorithm, n_jobs=N_JOBS)
    neighbors.fit(points).kneighbors(points)


def compare_graphs(report: Report, p: int, algorithms: tuple[str, ...]) -> None:
    """Time the graph of 100,000 points; one or two runs, because each takes up to a minute."""
    points = mixture(100_000, p)
    ours = [clock(lambda: NeighborGraph.from_points(points, 100, n_jobs=N_JOBS))]
    theirs = {name: clock(lambda name=name: scikit_learn(points, name)) for name in algorithms}
    ours.append(clock(lambda: NeighborGraph.from_points(points, 100, n_jobs=N_JOBS)))
    times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in theirs.items())
    report.line(
        f"exact graph, n = 1e5, p = {p}, k_max = 100 ({min(ours):.2f} s)",
        min(ours) / min(theirs.values()),
        at_most=1.3,
        against=f"scikit-learn's NearestNeighbors, {N_JOBS} jobs each, the best of {times}",
    )


def compare_products(report: Report, n: int, p: int) -> None:
    """Compare the CPU time of a graph in many dimensions with faiss's flat index, on one thread."""
    try:
        import faiss
    except ImportError:
        report.note(f"exact graph, n = {n}, p = {p}: not measured, needs faiss-cpu")
        return
    points = mixture(n, p)
    single = points.astype(np.float32)
    faiss.omp_set_num_threads(1)

    def flat() -> None:
        index = faiss.IndexFlatL2(p)
        index.add(single)
        index.search(single, 101)

    with threadpool_limits(limits=1):
        times: dict[str, list[float]] = {"ours": [], "faiss": []}
        for _ in range(2 if n <= 10_000 else 1):
            for name, run in (
                ("ours", lambda: NeighborGraph.from_points(points, 100, n_jobs=1)),
                ("faiss", flat),
            ):
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
    ours, theirs = (min(times[name]) for name in ("ours", "faiss"))
    report.line(
        f"exact graph, n = {n}, p = {p}, k_max = 100 ({ours:.1f} s)",
        ours / theirs,
        at_most=2.0,
        against=f"faiss-cpu's IndexFlatL2 in single precision ({theirs:.1f} s), 1 thread each",
    )


def compare_queries(report: Report, name, points, labels, new, k, target) -> None:
    """Time class counts of forward and reverse neighbours at every k.

    The reference is scikit-learn's prediction, which counts forward neighbours at one k.
    """
    graph = NeighborGraph.from_points(points, k)
    classifier = KNeighborsClassifier(n_neighbors=k).fit(points, labels)
    times = interleave(
        {
            "counts": lambda: graph.query(new).counts(labels, 2),
            "predict_proba": lambda: classifier.predict_proba(new),
        },
        repeats=9,
    )
    report.line(
        f"forward and reverse counts at every k: {name} ({1e3 * times['counts']:.1f} ms)",
        times["counts"] / times["predict_proba"],
        at_most=target,
        against="scikit-learn's KNeighborsClassifier.predict_proba at k = k_max, 1 job each",
    )


def run(report: Report) -> None:
    """Measure graphs and queries."""
    report.section("Neighbour graph")
    # This call compiles the kernels before anything is timed.
    NeighborGraph.from_points(mixture(500, 3), 10)
    # scikit-learn's "auto" uses a KD-tree in so few dimensions. At p = 10 its brute-force search is
    # faster, so both are timed.
    compare_graphs(report, 10, ("auto", "brute"))
    compare_graphs(report, 2, ("auto",))
    NeighborGraph.from_points(mixture(3000, 100), 10)
    for n in (10_000, 60_000):
        for p in (200, 784):
            compare_products(report, n, p)

    report.section("Queries of 1000 points")
    data = load_ripley()
    labels = np.unique(data.y_train, return_inverse=True)[1]
    name = "Ripley, n = 250, k_max = 125"
    compare_queries(report, name, data.X_train, labels, data.X_test, 125, 2.0)
    labels = np.random.default_rng(1).integers(0, 2, size=10_000)
    for p in (2, 10):
        points = mixture(11_000, p)
        name = f"mixture, n = 1e4, p = {p}, k_max = 100"
        compare_queries(report, name, points[:10_000], labels, points[10_000:], 100, None)
