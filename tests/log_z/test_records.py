"""What records of a pair of chains say: of other k, and of their own error."""

import numpy as np

from bayesknn.graph import NeighborGraph
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.estimate import compare_ks
from bayesknn.log_z.records import Records, Setting
from bayesknn.model import BoltzmannModel


def test_ratios_to_other_k_are_those_of_importance_sampling():
    """Log Z(k') - log Z(k) = log E[exp(D)], with the mean of D given the clusters."""
    graph = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(30, 2)), 5)
    beta, ks = 1.3, np.array([2, 3, 5])
    pair = ChainPair(
        BoltzmannModel(graph, 3), Setting.at(beta, 3), ks, np.random.SeedSequence(0), length=4
    )
    pair.advance(80)
    found = compare_ks(pair, ks)
    for at, k in enumerate(ks.tolist()):
        d = beta * (pair.series(k) / k - pair.series(3) / 3)
        of_clusters = beta * (pair.cluster_series(k) / k - pair.cluster_series(3) / 3)
        plain = np.log(np.mean(np.exp(d))) + np.mean(of_clusters - d)
        assert abs(found[0, at] - plain) < 1e-10
    assert np.all(found[:, 1] == 0.0)
    assert found[1:, [0, 2]].std(axis=0).min() > 1e-3


def test_resampled_errors_are_those_of_the_mean():
    """Over many sets of m batches: the variance of replicates is (m - 1) / (m - 3) of the mean's.

    The mean over 400 sets has a standard error of (2 / 39 / 400)^1/2 = 1.1 %, and the finite number
    of replicates adds as much: 10 % is more than six of both.
    """
    rng = np.random.default_rng(1)
    batches = rng.normal(size=(400, 2, 20))
    ring = NeighborGraph.from_neighbors([np.roll(np.arange(5), -1)])
    model, setting = BoltzmannModel(ring, 2), Setting.at(1.0, 1)
    found = [
        Records(model, setting, [1], key=seed).resample(one) for seed, one in enumerate(batches)
    ]
    ratio = np.mean([replicates[1:].var() for replicates in found]) * 40
    assert abs(ratio / (39 / 37) - 1) < 0.1
    assert all(replicates[0] == one.mean() for replicates, one in zip(found, batches, strict=True))


def test_the_autocorrelation_time_of_equal_records_is_known_only_where_all_edges_agree():
    model = BoltzmannModel(NeighborGraph.from_neighbors([[1, 2, 3, 4, 0]]), 2)
    pair = Records(model, Setting.at(1.0, 1), [1], key=0, thin=3)
    for value, time in ((5.0, 3.0), (3.0, np.nan)):
        pair.of_labels = np.full((2, 50, 1), value)
        np.testing.assert_equal(pair.autocorrelation_time(), time)
    # One chain that moves is enough.
    pair.of_labels[0, :, 0] = np.random.default_rng(0).integers(0, 6, 50)
    assert pair.autocorrelation_time() >= 3.0
