"""Swendsen-Wang with known labels: its twin, exact invariance, its law, and exact values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn._utils.random import spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
from bayesknn.labels.clamped import clamped_labels, free_edges
from bayesknn.labels.mixing import autocorrelation_time
from bayesknn.model import BoltzmannModel
from tests.labels import clamped_twin as twin
from tests.labels.cases import random_graph
from tests.model.enumeration import state_index
from tests.statistical import check, p_value_of_counts, p_value_of_z, rejects

# Mutual neighbours at rank 1 and across ranks, a free point nobody has as a first neighbour.
SMALL = NeighborGraph.from_neighbors([[1, 0, 1, 2, 3, 0], [2, 2, 0, 1, 5, 3]])
KNOWN = np.array([0, -1, 2, -1, 1, -1])
WEIGHTS = np.array([0.4, 1.0, 1.6])
FIELD = np.array([[0.0, 0.4, -0.3], [0.2, 0.0, 0.5], [-0.6, 0.1, 0.0]])
SWEEPS = 3


def edges_of(graph, known, n_classes, direction="both", class_weight=None):
    return free_edges(BoltzmannModel(graph, n_classes, class_weight, known), direction)


def draw(edges, beta, k, n_sweeps, **options):
    """One draw after so many sweeps."""
    at = np.array([beta]), np.array([k]), np.array([n_sweeps])
    return clamped_labels(edges, *at, **options)[0]


@given(data=st.data())
def test_same_labels_as_the_twin(data):
    n = data.draw(st.integers(2, 25), "n")
    k = data.draw(st.integers(1, n - 1), "k")
    n_classes = data.draw(st.integers(2, 4), "n_classes")
    beta = data.draw(st.sampled_from([0.0, 0.01, 0.7, 1.5, 4.0, 30.0]), "beta")
    direction = data.draw(st.sampled_from(["both", "forward"]), "direction")
    seed = data.draw(st.integers(0, 2**32), "seed")
    rng = np.random.default_rng(seed)
    known = rng.integers(-1, n_classes, n)
    known[rng.integers(n)] = -1
    weights = rng.uniform(0.2, 2.0, n_classes) if data.draw(st.booleans(), "weighted") else None
    edges = edges_of(random_graph(n, n - 1, seed), known, n_classes, direction, weights)
    m = len(edges.free)
    field = rng.normal(size=(m, n_classes)) if data.draw(st.booleans(), "field") else None
    initial = rng.integers(0, n_classes, m)
    key = rng.integers(2**64, dtype=np.uint64)
    found = draw(edges, beta, k, 2, key=key, initial=initial, field=field)
    expected = initial
    for sweep in (0, 1):
        expected = twin.sweep_free(edges, beta, k, field, key, sweep, expected)
    np.testing.assert_array_equal(found, expected)


CASES = [
    (k, beta, class_weight, field, direction)
    for k, beta in [(1, 0.5), (1, 2.0), (2, 0.9), (2, 3.0)]
    for class_weight, field in [(None, None), (WEIGHTS, None), (None, FIELD), (WEIGHTS, FIELD)]
    for direction in ["both", "forward"]
]


@pytest.mark.parametrize(("k", "beta", "class_weight", "field", "direction"), CASES)
def test_the_law_is_invariant(k, beta, class_weight, field, direction):
    options = dict(class_weight=class_weight, field=field)
    states, law = twin.exact_free_law(SMALL, KNOWN, beta, k, 3, direction=direction, **options)
    after = twin.push(law, states, SMALL, KNOWN, beta, k, 3, class_weight, field, direction, None)
    np.testing.assert_allclose(after, law, rtol=0, atol=1e-12)


@pytest.mark.mutant
@pytest.mark.parametrize("mutant", twin.MUTANTS + twin.LAW_MUTANTS)
def test_mutants_move_the_law(mutant):
    options = dict(class_weight=WEIGHTS, field=FIELD)
    states, law = twin.exact_free_law(SMALL, KNOWN, 1.5, 2, 3, **options)
    after = twin.push(law, states, SMALL, KNOWN, 1.5, 2, 3, WEIGHTS, FIELD, "both", mutant)
    assert abs(after.sum() - 1.0) < 1e-9
    assert np.abs(after - law).max() > 1e-3


def p_value_of_law(sampler, beta, k, class_weight=None, field=None, direction="both"):
    """Start copies of the small graph at exact draws, make a few sweeps, compare with the law."""

    def p_value(n_copies, seed):
        states, law = twin.exact_free_law(
            SMALL, KNOWN, beta, k, 3, class_weight=class_weight, field=field, direction=direction
        )
        offsets = 6 * np.repeat(np.arange(n_copies), 6)
        graph = NeighborGraph.from_neighbors(np.tile(SMALL.neighbors, n_copies) + offsets)
        edges = edges_of(graph, np.tile(KNOWN, n_copies), 3, direction, class_weight)
        start = np.random.default_rng(seed).choice(len(law), n_copies, p=law)
        fields = None if field is None else np.tile(field, (n_copies, 1))
        key = spawn_keys(seed, 1)[0]
        labels = sampler(edges, beta, k, fields, key, states[start].ravel())
        index = state_index(labels.reshape(n_copies, 3), 3)
        return p_value_of_counts(np.bincount(index, minlength=len(law)), law)

    return p_value


def compiled(edges, beta, k, field, key, initial):
    return draw(edges, beta, k, SWEEPS, key=key, initial=initial, field=field)


@pytest.mark.parametrize(("k", "beta", "class_weight", "field", "direction"), CASES[8:])
def test_law_of_the_draws(k, beta, class_weight, field, direction):
    check(p_value_of_law(compiled, beta, k, class_weight, field, direction), 30_000)


@pytest.mark.mutant
@pytest.mark.parametrize("mutant", twin.MUTANTS + twin.LAW_MUTANTS)
def test_broken_sweeps_are_caught(mutant):
    def broken(edges, beta, k, field, key, labels):
        for sweep in range(SWEEPS):
            labels = twin.sweep_free(edges, beta, k, field, key, sweep, labels, mutant)
        return labels

    weights = WEIGHTS if mutant == "colours whatever the weights" else None
    field = FIELD if mutant == "field ignored" else None
    assert rejects(p_value_of_law(broken, 1.5, 2, weights, field), 6_000)


def test_edges_between_free_points_count_half_where_only_forward_neighbours_are_heard():
    # The mutant: the law of whole edges.
    def whole(edges, beta, k, field, key, labels):
        return compiled(edges._replace(free_edge_weight=1.0), beta, k, field, key, labels)

    assert rejects(p_value_of_law(whole, 3.0, 2, direction="forward"), 30_000)


def test_known_labels_of_a_class_are_one_node():
    """The small graph of nodes has the conditional law of the whole one."""
    graph = random_graph(7, 3, seed=2)
    known = np.array([0, 1, -1, 0, -1, 1, -1])
    states, law = twin.exact_free_law(graph, known, 1.2, 3, 2)
    whole = np.tile(known, (len(states), 1))
    whole[:, known < 0] = states
    logs = np.array([twin.log_sum(graph, y, 1.2, 3, 2) for y in whole])
    np.testing.assert_allclose(law, np.exp(logs - np.logaddexp.reduce(logs)), rtol=1e-12)


# Exact values, computed independently.
EIGHT = [0, 1, 125, 126, 2, 3, 127, 128]
LABELLED = [
    80, 99, 67, 57, 33, 30, 105, 53, 117, 54, 90, 111,
    206, 226, 241, 196, 155, 172, 180, 231, 163, 128, 221, 132,
]  # fmt: skip


def log_likelihood(graph, known, beta, k):
    """Log f(known labels | beta, k), two classes."""
    nothing = np.full(graph.n_points, -1)
    return twin.log_sum(graph, known, beta, k, 2) - twin.log_sum(graph, nothing, beta, k, 2)


@pytest.fixture(scope="module")
def eight():
    ripley = load_ripley()
    graph = NeighborGraph.from_points(ripley.X_train[EIGHT], 3)
    return graph, np.append(ripley.y_train[EIGHT[:4]], [-1] * 4)


@pytest.fixture(scope="module")
def eight_posterior(eight):
    """Posterior of (beta, k) given four of eight labels, at Gauss-Legendre nodes of beta."""
    graph, known = eight
    x, weight = np.polynomial.legendre.leggauss(12)
    betas = 1.5 + 1.5 * x
    logs = [[log_likelihood(graph, known, beta, k) for beta in betas] for k in (1, 2, 3)]
    law = np.exp(logs) * weight
    return betas, law / law.sum()


def test_exact_values_on_eight_points(eight, eight_posterior):
    graph, known = eight
    log_f = [log_likelihood(graph, known, 1.5, k) for k in (1, 2, 3)]
    np.testing.assert_allclose(log_f, [-2.280855, -4.434392, -4.193841], atol=5e-7)
    betas, law = eight_posterior
    mean = (law * betas).sum()
    assert mean == pytest.approx(1.346769, abs=5e-7)
    # A coarse grid gives .875240; more nodes leave .8752374 as it is.
    assert np.sqrt((law * betas**2).sum() - mean**2) == pytest.approx(0.875240, abs=5e-6)
    np.testing.assert_allclose(law.sum(axis=1), [0.687240, 0.144837, 0.167923], atol=5e-7)
    probability = np.zeros(4)
    for k in (1, 2, 3):
        for beta, weight in zip(betas, law[k - 1], strict=True):
            states, conditional = twin.exact_free_law(graph, known, beta, k, 2)
            probability += weight * (conditional @ states)
    np.testing.assert_allclose(probability, [0.217863, 0.175815, 0.273479, 0.791843], atol=5e-7)


def test_draws_on_eight_points(eight, eight_posterior):
    graph, known = eight
    betas, law = eight_posterior
    states = np.array(list(np.ndindex(2, 2, 2, 2)))
    exact = sum(
        law[k - 1, b] * twin.exact_free_law(graph, known, beta, k, 2)[1]
        for k in (1, 2, 3)
        for b, beta in enumerate(betas)
    )
    edges = edges_of(graph, known, 2)

    def p_value(n_draws, seed):
        nodes = np.random.default_rng(seed).choice(law.size, n_draws, p=law.ravel())
        k, b = np.divmod(nodes, len(betas))
        draws = clamped_labels(
            edges, betas[b], k + 1, np.full(n_draws, 20),
            key=spawn_keys(seed, 1)[0], initial=np.zeros(4, int),
        )  # fmt: skip
        return p_value_of_counts(np.bincount(state_index(draws, 2), minlength=len(states)), exact)

    check(p_value, 20_000)


@pytest.fixture(scope="module")
def ripley():
    data = load_ripley()
    known = np.full(250, -1)
    known[LABELLED] = data.y_train[LABELLED]
    return NeighborGraph.from_points(data.X_train, 3), known


def test_exact_values_on_ripley(ripley):
    graph, known = ripley
    log_z = twin.log_sum(graph, known, 2.0, 3, 2)
    # The exact log Z of all 250 labels, computed independently.
    assert log_z - 521.41875105 == pytest.approx(-10.29558643, abs=2e-8)
    for points, probability in (([0], 0.346202), ([10], 0.655480), ([0, 10], 0.232661)):
        more = known.copy()
        more[points] = 1
        found = np.exp(twin.log_sum(graph, more, 2.0, 3, 2) - log_z)
        assert found == pytest.approx(probability, abs=5e-7)
    # Moments of the count of class 1 by differences of the log sum in a tilt.
    h = 0.01
    a, b, c, d = (twin.log_sum(graph, known, 2.0, 3, 2, t * h) for t in (-2, -1, 1, 2))
    assert (8 * (c - b) - (d - a)) / (12 * h) == pytest.approx(116.2115, abs=1e-4)
    variance = (16 * (b + c) - (a + d) - 30 * log_z) / (12 * h**2)
    assert np.sqrt(variance) == pytest.approx(19.196, abs=1e-3)


def test_draws_on_ripley(ripley):
    graph, known = ripley
    edges = edges_of(graph, known, 2)
    at = {int(point): q for q, point in enumerate(edges.free)}

    def p_value(n_draws, seed, mean=116.2115):
        draws = clamped_labels(
            edges, np.full(n_draws, 2.0), np.full(n_draws, 3), np.full(n_draws, 5),
            key=spawn_keys(seed, 1)[0], initial=np.arange(226) % 2,
        )[100:].astype(float)  # fmt: skip
        count = draws.sum(axis=1)
        first, second = draws[:, at[0]], draws[:, at[10]]
        series = [first, second, first * second, count, (count - mean) ** 2]
        exact = [0.346202, 0.655480, 0.232661, mean, 19.196**2]
        z = [
            (s.mean() - e) / (s.std() * np.sqrt(max(1.0, autocorrelation_time(s)) / len(s)))
            for s, e in zip(series, exact, strict=True)
        ]
        return p_value_of_z(z)

    check(p_value, 10_000)
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, mean=118.0), 10_000)


def test_draws_are_points_of_one_chain(ripley):
    graph, known = ripley
    edges = edges_of(graph, known, 2)
    key, start = spawn_keys(4, 1)[0], np.zeros(226, int)
    betas, ks, sweeps = np.linspace(0.5, 2.5, 30), np.arange(30) % 3 + 1, np.arange(30) % 4
    whole = clamped_labels(edges, betas, ks, sweeps, key=key, initial=start)
    done = []
    some = clamped_labels(
        edges, betas[:10], ks[:10], sweeps[:10], key=key, initial=start, advance=done.append
    )
    np.testing.assert_array_equal(some, whole[:10])
    assert done == sweeps[:10].tolist()


def test_bad_edges_are_named():
    with pytest.raises(ValueError, match="every label is fixed"):
        edges_of(SMALL, [0, 1, 2, 0, 0, 0], 3)
    with pytest.raises(ValueError, match="direction must be one of both, forward, got 'reverse'"):
        edges_of(SMALL, KNOWN, 3, "reverse")


def test_sample_labels_draws_the_free_labels_given_the_fixed_ones():
    model = BoltzmannModel(SMALL, 3, WEIGHTS).fix(KNOWN)
    free = model.is_free
    states, law = twin.exact_free_law(SMALL, KNOWN, 1.4, 2, 3, class_weight=WEIGHTS)

    def p_value(n_draws, seed, law=law):
        labels, info = sample_labels(
            model, 1.4, 2, n_draws=n_draws, thin=8, random_state=seed, return_info=True
        )
        assert np.all(labels[:, ~free] == KNOWN[~free])
        np.testing.assert_allclose(info.agreement[:5], model.agreement(labels[:5], 2))
        index = state_index(labels[:, free], 3)
        return p_value_of_counts(np.bincount(index, minlength=len(states)), law)

    check(p_value, 10_000)
    # The mutant: the distribution of all labels, whatever is fixed.
    everywhere = np.full(len(law), 1 / len(law))
    assert rejects(lambda n_draws, seed: p_value(n_draws, seed, everywhere), 2_000)
