"""Times of a fit in memory and on a Dask cluster of two processes, both on two cores."""

import time
from pathlib import Path

from bayesknn import BayesianKNeighborsClassifier
from benchmarks.bench_large import mixture
from benchmarks.harness import Report

N, P, K = 100_000, 10, 50
N_BLOCKS = (4, 8, 32)


def peak_megabytes() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def cpu_seconds() -> float:
    return time.process_time()


def run(report: Report) -> None:
    import dask.array as da
    from distributed import Client, LocalCluster

    from bayesknn.distributed import DistributedNeighborsClassifier

    X, y = mixture(N, P)
    options = {"max_neighbors": K, "random_state": 0}
    report.section(f"Dask on two processes (n = {N:,}, p = {P}, K = {K}), pseudo-likelihood")
    BayesianKNeighborsClassifier("pseudo", n_jobs=2, **options).fit(X[:2000], y[:2000])
    start, cpu = time.perf_counter(), time.process_time()
    BayesianKNeighborsClassifier("pseudo", n_jobs=2, **options).fit(X, y)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    peaks = {}
    for n_blocks in N_BLOCKS:
        rows = -(-N // n_blocks)
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            few = da.from_array(X[:2000], chunks=(500, P)), da.from_array(y[:2000], chunks=500)
            DistributedNeighborsClassifier(**options).fit(
                *few
            )  # This fit loads the compiled kernels.
            data = da.from_array(X, chunks=(rows, P)), da.from_array(y, chunks=rows)
            before = sum(client.run(cpu_seconds).values()) + time.process_time()
            start = time.perf_counter()
            DistributedNeighborsClassifier(**options).fit(*data)
            seconds = time.perf_counter() - start
            spent = sum(client.run(cpu_seconds).values()) + time.process_time() - before
            peaks[n_blocks] = max(client.run(peak_megabytes).values())
        report.line(
            f"fit on {n_blocks} blocks ({seconds:.1f} s; processor time {spent / cpu:.2f}x)",
            seconds / wall,
            at_most=4.0 if n_blocks == N_BLOCKS[0] else None,
            against=f"the in-memory fit with two threads, {wall:.1f} s",
        )
    for n_blocks, peak in peaks.items():
        first = n_blocks == N_BLOCKS[0]
        report.line(
            f"peak memory of a worker with {n_blocks} blocks ({peak:.0f} MiB)",
            peak / peaks[N_BLOCKS[0]],
            at_most=None if first else 1.3,
            against="" if first else f"with {N_BLOCKS[0]} blocks",
        )
