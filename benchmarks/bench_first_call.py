"""What the first call in a fresh interpreter costs once the kernels are in the disk cache."""

import subprocess
import sys

_SCRIPT = """
import time
import numpy as np
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
graph = NeighborGraph.from_points(load_ripley().X_train, k_max=20)
times = []
for _ in range(3):
    start = time.perf_counter()
    sample_labels(graph, 1.4, 14, {n_classes}, "{method}", random_state=0)
    times.append(time.perf_counter() - start)
print(times[0] - min(times))
"""


def run(report):
    report.section("First call in a fresh interpreter, warm disk cache: what it adds")
    for method in ("gibbs", "swendsen-wang", "perfect"):
        for n_classes in (2, 4):
            command = [sys.executable, "-c", _SCRIPT.format(method=method, n_classes=n_classes)]
            seconds = [
                float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                for _ in range(4)
            ]
            # The first run fills the cache.
            report.line(f"{method}, G = {n_classes}", min(seconds[1:]), "s", at_most=0.5)
