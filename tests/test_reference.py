"""Tests of the reference against closed forms, known numbers and exact distributions."""

import ast
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bayesknn import BayesianKNeighborsClassifier
from bayesknn import reference as ref
from bayesknn.datasets import load_ripley
from bayesknn.graph.ties import key_of_rows
from tests.statistical import check, p_value_of_counts, rejects

BETA_MAX, K = 2.5, 3
PLUG_IN = (1.0, 2)
TOY = ref.neighbours(ref.distances(ref.TOY_X, ref.TOY_X))
TWO, WEIGHTS = np.ones(2), np.array([0.6, 1.5])
# At k = 1, points 0 and 1 are mutual neighbours, and point 3 is neighbour of no other point.
NEAR = np.array([[1, 2], [0, 2], [1, 0], [2, 1]])


@cache
def ripley():
    data = load_ripley()
    near = ref.neighbours(ref.distances(data.X_train, data.X_train))
    new = ref.rank(ref.distances(data.X_test, data.X_train))
    return near, data.y_train, new, data.y_test


# What it is.


def test_it_imports_nothing_of_the_package():
    tree = ast.parse(Path(ref.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [
        a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names
    ]
    assert {module.split(".")[0] for module in modules} == {
        "__future__", "collections", "itertools", "numpy",
    }  # fmt: skip


def test_it_has_at_most_400_lines_of_code():
    text = Path(ref.__file__).read_text()
    tree = ast.parse(text)
    is_code = np.array([bool(line.split("#")[0].strip()) for line in text.splitlines()])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Module) and ast.get_docstring(node):
            is_code[node.body[0].lineno - 1 : node.body[0].end_lineno] = False
    assert is_code.sum() <= 400


# Neighbours, votes and likelihoods: numbers computed independently.


def test_keys_settle_equal_distances_as_in_the_package():
    assert [ref.key(row) for row in range(100)] == key_of_rows(np.arange(100)).tolist()
    order = ref.rank(np.zeros((1, 8)))[0]
    assert order.tolist() == sorted(range(8), key=ref.key)
    assert ref.neighbours(np.zeros((8, 8)))[3].tolist() == [i for i in order if i != 3]


@pytest.mark.parametrize(
    ("k", "error"), [(1, 0.150), (3, 0.134), (15, 0.095), (17, 0.087), (31, 0.084), (54, 0.081)]
)
def test_classical_errors_on_ripley(k, error):
    _, y, new, y_new = ripley()
    assert np.mean(ref.classify(new, y, k) != y_new) == pytest.approx(error, abs=1e-12)


def test_leave_one_out_on_ripley():
    near, y, *_ = ripley()
    errors = {k: ref.leave_one_out_error(near, y, k) for k in (1, 16, 17, 35, 44, 54, 55)}
    least = [k for k, error in errors.items() if error == pytest.approx(0.116)]
    assert least == [17, 35, 54] and min(errors.values()) == errors[17]


def test_pseudo_likelihood_has_its_maximum_on_ripley():
    near, y, *_ = ripley()
    log_f = partial(ref.log_pseudo_likelihood, near, TWO, y)
    assert log_f(2.2805, 53) == pytest.approx(-71.7523, abs=5e-5)
    around = [(2.2805, 52), (2.2805, 54), (2.25, 53), (2.31, 53), (2.2, 50), (2.35, 56)]
    assert all(log_f(*at) < log_f(2.2805, 53) for at in around)


@pytest.mark.parametrize("a", [TWO, WEIGHTS])
def test_conditionals_are_those_of_the_joint_distribution(a):
    every, p = ref.distribution(NEAR, a, 1.3, 2)
    by_labels = p.reshape((2,) * 4)
    for y, of_y in zip(every, p, strict=True):
        conditional = ref.conditional(NEAR, a, y, 1.3, 2)
        for i in range(4):
            either = by_labels[(*y[:i], slice(None), *y[i + 1 :])]
            np.testing.assert_allclose(conditional[i], either / either.sum(), rtol=1e-12)
        assert ref.log_likelihood(NEAR, a, y, 1.3, 2) == pytest.approx(np.log(of_y), rel=1e-12)


def test_two_points_that_are_mutual_neighbours():
    """On the graph of the paper's example, Z = 2 (1 + exp(2 beta)) and E[S] = d log Z / d beta."""
    pair, e = np.array([[1], [0]]), np.exp(2 * 1.3)
    assert ref.log_normalizer(pair, TWO, 1.3, 1) == pytest.approx(np.log(2 * (1 + e)))
    assert ref.mean_agreement(pair, TWO, 1.3, 1) == pytest.approx(2 * e / (1 + e))


def test_class_weights_are_probabilities_over_proportions():
    a = ref.class_weights(np.array([0, 0, 0, 1]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(a, [2 / 3, 2])


def test_a_new_point_is_one_more_point_without_ties():
    # The predictive probability of a new point is its full conditional in the graph that contains
    # it. Edges between the other points change, but do not enter this conditional.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), rng.integers(3, size=12)
    D = ref.distances(X, X)
    larger = ref.conditional(ref.neighbours(D), np.ones(3), y, 1.7, 4)[-1]
    predicted = ref.predictive(D[:-1, :-1], D[-1, :-1], np.ones(3), y[:-1], 1.7, 4)
    np.testing.assert_allclose(predicted, larger, rtol=1e-12)


def test_path_sampling_is_the_integral_of_the_mean():
    betas = np.linspace(0, 3, 300)
    path = ref.path_sampling(lambda beta: ref.mean_agreement(NEAR, TWO, beta, 2) / 2, 4, 2, betas)
    exact = [ref.log_normalizer(NEAR, TWO, beta, 2) for beta in betas]
    np.testing.assert_allclose(path, exact, atol=1e-4)


def test_the_average_over_a_grid_and_its_decision():
    log_f = partial(ref.log_likelihood, TOY, TWO, ref.TOY_Y)
    grid = ref.grid_posterior(log_f, BETA_MAX, K, n_betas=20)
    D, d = ref.distances(ref.TOY_X, ref.TOY_X), ref.distances(np.array([[5.5]]), ref.TOY_X)[0]
    p = ref.average(partial(ref.predictive, D, d, TWO, ref.TOY_Y), *grid)
    assert p.sum() == pytest.approx(1)
    assert ref.decide(p) == (1, pytest.approx(1 - p[1]))


# Draws of the labels against the listed distribution.


def gibbs(a, seed, t):
    y, rng = np.zeros(4, int), np.random.default_rng([seed, t])
    for _ in range(25):
        y = ref.gibbs_sweep(NEAR, a, y, 0.8, 2, rng.random(4))
    return y


def swendsen_wang(a, seed, t):
    y, rng = np.zeros(4, int), np.random.default_rng([seed, t])
    for _ in range(8):
        y = ref.swendsen_wang_sweep(NEAR, a, y, 0.8, 2, rng)
    return y


def perfect(a, seed, t):
    return ref.perfect_labels(NEAR, a, 0.8, 2, lambda time: replay(8, seed, t, time))


def perfect_by_sites(a, seed, t):
    return ref.perfect_labels_of_two_classes(NEAR, a, 0.8, 2, lambda time: replay(4, seed, t, time))


def replay(size, *names):
    return np.random.default_rng(names).random(size)


def p_value_of(draw, a, beta=0.8):
    _every, p = ref.distribution(NEAR, a, beta, 2)

    def p_value(n_draws, seed):
        draws = np.array([draw(a, seed, t) for t in range(n_draws)])
        codes = draws @ len(a) ** np.arange(4)[::-1]
        return p_value_of_counts(np.bincount(codes, minlength=len(p)), p)

    return p_value


@pytest.mark.parametrize(
    ("draw", "a"),
    [
        (gibbs, np.ones(3)),
        (gibbs, WEIGHTS),
        (swendsen_wang, np.ones(3)),
        (swendsen_wang, WEIGHTS),
        (perfect, np.ones(3)),
        (perfect, TWO),
        (perfect_by_sites, TWO),
        (perfect_by_sites, WEIGHTS),
    ],
)
def test_draws_have_the_distribution(draw, a):
    check(p_value_of(draw, a), 400)


@pytest.mark.mutant
def test_draws_at_another_beta_are_rejected():
    assert rejects(p_value_of(perfect, TWO, beta=1.6), 400)


# Chains on (beta, k) against the grid with the exact constant.


@cache
def toy_grid():
    return ref.grid_posterior(partial(ref.log_likelihood, TOY, TWO, ref.TOY_Y), BETA_MAX, K)


@cache
def exact_means():
    """Return E beta, P(k = 1) and P(k = 2) on the toy data, by the grid."""
    betas, _, weights = toy_grid()
    return np.array([weights.sum(axis=0) @ betas, *weights.sum(axis=1)[:2]])


@cache
def tabulated(k):
    """Return S_k of all labellings of the toy data, shape (64,)."""
    return ref.agreement(TOY, TWO, ref.labellings(6, 2), k)


def run(move, n_moves, seed):
    """Return the means of beta, k = 1 and k = 2 over one chain.

    The chain starts at a draw from the posterior, because some chains do not move for many
    iterations. The auxiliary labels start at a draw at the plug-in, which is their distribution
    under the joint posterior.
    """
    rng = np.random.default_rng(seed)
    walk = partial(ref.propose, beta_max=BETA_MAX, K=K, tau=2.0, r=1)
    h = partial(ref.potential, TOY, TWO)

    def draw(beta, k):
        p = ref.softmax(beta / k * tabulated(k))
        return ref.labellings(6, 2)[ref.choose(p, rng.random())]

    def log_f(beta, k):
        return h(ref.TOY_Y, beta, k) - np.logaddexp.reduce(beta / k * tabulated(k))

    def forget_q(at, rng):
        to, log_correction = walk(at, rng=rng)
        n_steps = [len(ref.steps(k, K, 1)) for k in (at[1], to[1])]
        return to, log_correction - np.log(n_steps[0] / n_steps[1])

    betas, ks, weights = toy_grid()
    row, column = divmod(rng.choice(weights.size, p=weights.ravel()), len(betas))
    beta = betas[column] + (rng.random() - 0.5) * (betas[1] - betas[0])
    at, z, draws = (float(beta), int(ks[row])), draw(*PLUG_IN), []
    for _ in range(n_moves):
        if move == "metropolis":
            at = ref.metropolis_move(at, log_f, lambda at, rng: walk(at, rng=rng), rng)
        elif move == "exchange":
            at = ref.exchange_move(at, h, ref.TOY_Y, draw, lambda at, rng: walk(at, rng=rng), rng)
        elif move == "no Hastings term":
            at = ref.metropolis_move(at, log_f, forget_q, rng)
        else:
            at, z = ref.auxiliary_move(
                at, z, h, ref.TOY_Y, PLUG_IN, draw, lambda at, rng: walk(at, rng=rng), rng
            )
        draws.append((at[0], at[1] == 1, at[1] == 2))
    return np.mean(draws, axis=0)


def p_value_of_chains(move):
    def p_value(n_moves, seed):
        means = np.array([run(move, n_moves, [seed, chain]) for chain in range(30)])
        return min(1.0, 3 * stats.ttest_1samp(means, exact_means()).pvalue.min())

    return p_value


@pytest.mark.parametrize("move", ["metropolis", "auxiliary", "exchange"])
def test_chains_agree_with_the_grid(move):
    check(p_value_of_chains(move), 100)


@pytest.mark.mutant
def test_a_chain_without_its_hastings_term_is_rejected():
    assert rejects(p_value_of_chains("no Hastings term"), 100)


# The package, from points to probabilities.


def reference_answers(log_f):
    """Return E beta, P(k) and the class probabilities of four new points."""
    X, y, new = small_data()
    D = ref.distances(X, X)
    log_f = partial(log_f, ref.neighbours(D), TWO, y)
    betas, ks, weights = ref.grid_posterior(log_f, BETA_MAX, K, n_betas=100)
    p = [
        ref.average(partial(ref.predictive, D, d, TWO, y), betas, ks, weights)
        for d in ref.distances(new, X)
    ]
    return weights.sum(axis=0) @ betas, weights.sum(axis=1), np.array(p)


def small_data():
    rng, y = np.random.default_rng(4), np.arange(10) % 2
    return rng.normal(size=(10, 2)) + y[:, None], y, rng.normal(size=(4, 2))


def fit(likelihood, seed):
    X, y, _ = small_data()
    options = {"beta_max": BETA_MAX, "max_neighbors": K, "random_state": seed}
    return BayesianKNeighborsClassifier(likelihood, inference="grid", **options).fit(X, y)


def test_the_classifier_with_the_pseudo_likelihood_is_the_reference():
    beta, of_k, p = reference_answers(ref.log_pseudo_likelihood)
    clf = fit("pseudo", 0)
    assert clf.beta_mean_ == pytest.approx(beta, abs=1e-4)
    np.testing.assert_allclose(clf.k_probabilities_, of_k, atol=1e-4)
    np.testing.assert_allclose(clf.predict_proba(small_data()[2]), p, atol=1e-4)


def test_the_coherent_classifier_is_the_reference():
    """With so few points the classifier computes the normalising constant exactly."""
    clf = fit("coherent", 0)
    answers = [
        clf.beta_mean_, *clf.k_probabilities_[:-1], *clf.predict_proba(small_data()[2])[:, 0]
    ]  # fmt: skip

    def differ(log_f):
        beta, of_k, p = reference_answers(log_f)
        return np.abs(np.subtract(answers, [beta, *of_k[:-1], *p[:, 0]])).max()

    assert differ(ref.log_likelihood) < 1e-3 < 1e-2 < differ(ref.log_pseudo_likelihood)
