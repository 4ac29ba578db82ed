"""Pilots run until their autocorrelation time is known, and no longer than is bearable."""

import numpy as np
import pytest

from bayesknn.exceptions import MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.log_z.records import Setting
from bayesknn.log_z.simulation import Simulation
from bayesknn.model import BoltzmannModel

GRAPH = NeighborGraph.from_points(np.random.default_rng(0).normal(size=(3000, 2)), 2)


class Chains:
    """A pair of chains whose autocorrelation time is known beforehand."""

    thin = 1

    def __init__(self, time, is_split):
        self.time, self.is_split, self.n_records = time, is_split, 0

    def autocorrelation_time(self):
        return self.time

    @property
    def sweeps_per_chain(self):
        return self.n_records

    def run(self, chain, n_records):
        return n_records

    def add(self, chains):
        self.n_records += chains[0]

    def error_inflation(self, time):
        return 1.0


@pytest.mark.parametrize(
    ("n_classes", "time", "is_split", "least", "most", "is_slow"),
    [
        (2, 2.0, False, 64, 64, False),
        (3, 20.0, False, 400, 500, False),
        # Two classes have a continuous transition, where chains are slow but cross.
        (2, 40.0, False, 800, 1000, False),
        (3, 40.0, False, 512, 512, True),
        (2, 400.0, False, 1024, 1024, True),
        (3, 2.0, True, 512, 512, True),
    ],
)
def test_pilots_stop_when_time_is_known_or_hopeless(
    monkeypatch, n_classes, time, is_split, least, most, is_slow
):
    chains = Chains(time, is_split)
    monkeypatch.setattr(Simulation, "pair", lambda *args, **options: chains)
    model = BoltzmannModel(GRAPH, n_classes)
    with Simulation(model, np.random.SeedSequence(0), n_jobs=1) as simulation:
        pilot = simulation.pilot(Setting.at(1.0, 1), [1], (0,))
    assert least <= pilot.pair.n_records <= most
    assert pilot.is_slow == is_slow


def test_a_pilot_whose_time_is_unknown_says_so_and_is_slow(monkeypatch):
    chains = Chains(np.nan, False)
    monkeypatch.setattr(Simulation, "pair", lambda *args, **options: chains)
    with (
        Simulation(BoltzmannModel(GRAPH, 2), np.random.SeedSequence(0), n_jobs=1) as simulation,
        pytest.warns(MixingWarning, match="time of chains at beta=1, k=1 is unknown: S is the"),
    ):
        pilot = simulation.pilot(Setting.at(1.0, 1), [1], (0,))
    assert pilot.is_slow and pilot.pair.time == pilot.pair.n_records == 1024


def test_records_grow_with_the_square_of_the_excess_until_the_sweeps_are_spent():
    pairs = [Chains(1.0, False), Chains(1.0, False)]
    for pair, n_records in zip(pairs, (100, 300), strict=True):
        pair.n_records = n_records
    with Simulation(BoltzmannModel(GRAPH, 2), np.random.SeedSequence(0), n_jobs=1) as simulation:

        def plan(excess, n_left):
            return [n for _, n in simulation.extend(pairs, excess, n_left)]

        assert plan(1.5, np.inf) == [125, 375]
        # Two chains of 400 records have made 800 sweeps.
        assert plan(1.5, 400.0) == [50, 150]
        assert plan(1.01, np.inf) == [25, 75] and plan(10.0, np.inf) == [300, 900]
        assert plan(1.0, np.inf) == plan(1.5, 0.0) == []
