"""The table as an object: kept, reused, drawn, and refused where it does not belong."""

import functools
import importlib

import numpy as np
import pytest

from bayesknn.exceptions import MixingWarning
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import (
    CoherentLikelihood,
    ExactLikelihood,
    PathTable,
    log_normalizer,
    path_table,
)
from bayesknn.log_z.chains import ChainPair
from bayesknn.model import ArrayPrior, UniformPrior
from bayesknn.posterior import grid_posterior, metropolis

POINTS = np.random.default_rng(2).normal(size=(40, 2))
LABELS = (POINTS[:, 0] + 0.5 * POINTS[:, 1] > 0).astype(int)
GRAPH = NeighborGraph.from_points(POINTS, k_max=8)
ARRAYS = ("betas", "log_normalizers", "means", "slopes", "closure", "is_exact", "fingerprint")


@functools.cache
def table():
    return path_table(GRAPH, 2, labels=LABELS, exact=False, random_state=4)


@functools.cache
def exact_table():
    """Exact at every k."""
    return path_table(NeighborGraph.from_points(POINTS, k_max=4), 2, random_state=0)


def assert_same(one, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "closure")


@pytest.mark.parametrize("labels", [None, LABELS])
def test_it_does_not_depend_on_the_number_of_threads(labels):
    one, two = (
        path_table(GRAPH, 2, k_max=4, labels=labels, exact=False, random_state=1, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    assert_same(one, two)


@pytest.mark.parametrize("weights", [None, [0.8, 1.2]])
def test_saved_and_loaded_it_is_the_same(tmp_path, weights):
    made = path_table(
        GRAPH, 2, k_max=2, labels=LABELS, class_weight=weights, exact=False, random_state=0
    )
    made.save(tmp_path / "table.npz")
    read = PathTable.load(tmp_path / "table.npz")
    assert_same(made, read)
    assert repr(read) == repr(made) and read.warnings == made.warnings
    assert np.array_equal(read.k_probabilities, made.k_probabilities)
    assert read.log_normalizer(1.3, 2) == made.log_normalizer(1.3, 2)
    read.check_graph(GRAPH, 2, weights)


def test_what_is_not_a_table_is_not_loaded(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("not a table")
    for name in ("other.npz", "array.npy", "text.npz"):
        with pytest.raises(ValueError, match=f"{name} is not a table of log Z"):
            PathTable.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        PathTable.load(tmp_path / "nowhere.npz")


def test_a_damaged_table_is_not_loaded(tmp_path):
    path = tmp_path / "table.npz"
    exact_table().save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(len(whole) - 300, size=30):
        broken = bytearray(whole)
        broken[at : at + 200] = rng.bytes(200)
        path.write_bytes(bytes(broken))
        with pytest.raises(ValueError, match="is not a table of log Z .* or it is damaged"):
            PathTable.load(path)
    with np.load(_write(path, whole)) as archive:
        arrays = dict(archive)
    del arrays["betas"]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="or it is damaged"):
        PathTable.load(path)


def _write(path, content):
    path.write_bytes(content)
    return path


def test_values_are_arrays_or_floats():
    assert isinstance(table().log_normalizer(1.0, 3), float)
    assert isinstance(table().error(1.0, 3), float)
    betas = np.linspace(0, 4, 6).reshape(2, 3)
    assert table().log_normalizer(betas, 3).shape == (2, 3)
    replicates = table().replicates(betas, 3)
    assert replicates.shape[1:] == (2, 3)
    assert np.array_equal(replicates[0], table().log_normalizer(betas, 3))
    assert np.array_equal(replicates[1:].std(axis=0), table().error(betas, 3))


@pytest.mark.parametrize(
    ("beta", "k", "words"),
    [
        (1.0, 9, "k must be an integer in 1..8"),
        (1.0, 0, "k must be an integer in 1..8"),
        (1.0, 1.5, "k must be an integer"),
        (4.1, 2, r"beta must lie in \[0, 4\]"),
        (-0.1, 2, "beta must be at least 0"),
    ],
)
def test_beyond_its_range_it_says_so(beta, k, words):
    with pytest.raises(ValueError, match=words):
        table().log_normalizer(beta, k)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta_max": 0.0}, "beta_max must be a positive number"),
        ({"beta_max": -1.0}, "beta_max must be a positive number"),
        ({"k_max": 9}, "k must be an integer in 1..8"),
        ({"tolerance": 0.0}, "tolerance must be a positive number"),
        ({"tolerance": None}, "tolerance must be a positive number"),
        ({"labels": LABELS[:5]}, "labels"),
        ({"labels": LABELS + 1}, "labels"),
        ({"class_weight": [1.0]}, "class_weight"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        path_table(GRAPH, 2, **options)


def test_another_graph_is_refused():
    moved = POINTS.copy()
    moved[0] += 5.0
    with pytest.raises(ValueError, match="another neighbour graph"):
        CoherentLikelihood(NeighborGraph.from_points(moved, k_max=8), LABELS, table=table())
    fewer = NeighborGraph.from_points(POINTS[:30], k_max=8)
    with pytest.raises(ValueError, match="made for 40 points, the graph has 30"):
        CoherentLikelihood(fewer, LABELS[:30], table=table())
    with pytest.raises(ValueError, match="made for 2 classes, not for 3"):
        CoherentLikelihood(GRAPH, LABELS, 3, table=table())
    with pytest.raises(ValueError, match="other class weights"):
        CoherentLikelihood(GRAPH, LABELS, class_weight=[0.5, 1.5], table=table())


def test_the_same_graph_with_other_k_max_is_served():
    longer = NeighborGraph.from_points(POINTS, k_max=12)
    assert CoherentLikelihood(longer, LABELS, table=table()).k_max == 8
    shorter = NeighborGraph.from_points(POINTS, k_max=5)
    assert CoherentLikelihood(shorter, LABELS, table=table()).k_max == 5


def test_it_serves_any_prior_without_simulation(monkeypatch):
    likelihood = CoherentLikelihood(exact_table_graph(), LABELS, table=exact_table())
    twin = ExactLikelihood(exact_table_graph(), LABELS)
    monkeypatch.setattr(ChainPair, "run", None)
    for prior in (UniformPrior(4, 4.0), ArrayPrior(np.array([0.1, 0.2, 0.3, 0.4]), 4.0)):
        found, expected = grid_posterior(likelihood, prior), grid_posterior(twin, prior)
        assert found.k_probabilities == pytest.approx(expected.k_probabilities, abs=1e-6)
        assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-6)
    with pytest.warns(MixingWarning):
        tree = metropolis(
            likelihood, UniformPrior(4, 4.0), n_chains=1, n_draws=20, n_warmup=20, random_state=0
        )
    assert tree["posterior/beta"].shape == (1, 20)


def exact_table_graph():
    return NeighborGraph.from_points(POINTS, k_max=4)


def test_probabilities_of_k_are_those_of_the_grid():
    likelihood = CoherentLikelihood(GRAPH, LABELS, table=table())
    posterior = grid_posterior(likelihood, UniformPrior(8, 4.0))
    assert table().k_probabilities == pytest.approx(posterior.k_probabilities, abs=2e-3)
    assert table().k_probabilities_error.shape == (8,)
    assert 0 < table().k_probabilities_error.max() < 0.05


def test_without_a_table_it_says_what_to_do():
    with pytest.raises(ValueError, match="path_table"):
        CoherentLikelihood(GRAPH, LABELS).log_density(1.0, 1)


def test_a_tolerance_that_was_not_reached_is_told(monkeypatch):
    # The module, which has the name of the function.
    module = importlib.import_module("bayesknn.log_z.path_table")
    monkeypatch.setattr(module, "MAX_SWEEPS", 2e4)
    with pytest.warns(MixingWarning, match="where 1e-09 was asked for"):
        made = path_table(GRAPH, 2, k_max=1, exact=False, tolerance=1e-9, random_state=0)
    assert len(made.warnings) == 1
    assert made.n_sweeps < 4e4
    with pytest.warns(MixingWarning, match="where 1e-09 was asked for"):
        value, error = log_normalizer(
            GRAPH, 1.0, 3, 2, method="path", tolerance=1e-9, random_state=0
        )
    exact = log_normalizer(GRAPH, 1.0, 3, 2).value
    assert abs(value - exact) < 6 * error < 0.6
