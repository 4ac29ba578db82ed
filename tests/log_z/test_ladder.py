"""log Z on the way from beta = 0 when there is little time, against a ring's exact value."""

import numpy as np
from scipy.stats import chi2

from bayesknn.graph import NeighborGraph
from bayesknn.log_z.chains import Setting
from bayesknn.log_z.ladder import log_z_from_zero
from bayesknn.log_z.simulation import Simulation
from bayesknn.model import BoltzmannModel

N, N_CLASSES, BETA, TOLERANCE = 3000, 3, 2.0, 0.4
N_SEEDS = 10


def test_the_first_pairs_alone_tell_log_z_within_its_error():
    ring = NeighborGraph.from_neighbors([np.roll(np.arange(N), -1)])
    exact = N * np.log(np.exp(BETA) + N_CLASSES - 1)
    model, scores = BoltzmannModel(ring, N_CLASSES), []
    for seed in range(N_SEEDS):
        with Simulation(model, np.random.SeedSequence(seed)) as simulation:
            last = simulation.pair(Setting.at(BETA, 1), [1], (1,), length=4)
            last.advance(64)
            found = log_z_from_zero(simulation, last, TOLERANCE, max_sweeps=0.0, key=(2,))
        error = found[1:].std()
        # It gave up before it was precise, and is still of use.
        assert TOLERANCE < error < 1e-3 * exact
        scores.append((found[0] - exact) / error)
    low, high = chi2(N_SEEDS).ppf([1e-4, 1 - 1e-4])
    assert low < np.sum(np.square(scores)) < high
