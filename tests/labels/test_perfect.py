"""The front of the perfect samplers: law, key, threads, what it refuses and how it fails."""

import pickle

import numpy as np
import pytest

from bayesknn._utils.random import spawn_keys
from bayesknn.datasets import load_ripley
from bayesknn.exceptions import CoalescenceError
from bayesknn.graph import NeighborGraph
from bayesknn.model import BoltzmannModel
from tests.labels.samplers import perfect_labels
from tests.model.enumeration import exact_law, state_index
from tests.statistical import check, p_value_of_counts, rejects

KEY = spawn_keys(0, 1)[0]
GRAPH = NeighborGraph.from_neighbors([[1, 0, 1, 2, 3], [2, 2, 0, 1, 0]])
WEIGHTS = [0.6, 1.5]


def p_value_of_draws(beta, n_classes, class_weight=None, graph=GRAPH, drawn=None, **options):
    """Draws against the law; ``drawn`` overrides what is asked of the sampler, to break it."""
    k = graph.k_max
    asked = {"beta": beta, "class_weight": class_weight} | (drawn or {})
    _, law = exact_law(graph, beta, k, n_classes, class_weight)

    def p_value(n_draws, seed):
        labels, _ = perfect_labels(
            graph, k=k, n_classes=n_classes, n_draws=n_draws, key=spawn_keys(seed, 1)[0],
            **asked, **options,
        )  # fmt: skip
        counts = np.bincount(state_index(labels, n_classes), minlength=len(law))
        return p_value_of_counts(counts, law)

    return p_value


@pytest.mark.parametrize("beta", [0.4, 1.6, 3.0])
@pytest.mark.parametrize(
    ("n_classes", "class_weight"),
    [(2, None), (3, None), (4, None), (2, WEIGHTS), (2, [1.7, 0.9]), (3, [0.8] * 3)],
)
def test_law_of_bonds(beta, n_classes, class_weight):
    check(p_value_of_draws(beta, n_classes, class_weight), n_draws=20_000)


@pytest.mark.parametrize(
    ("class_weight", "drawn"),
    [
        (None, {"beta": 2 * 0.8}),
        (WEIGHTS, {"class_weight": None}),
        (WEIGHTS, {"class_weight": WEIGHTS[::-1]}),
        (WEIGHTS, {"class_weight": [1.05, 1.05]}),
    ],
    ids=["beta not divided by k", "no weights", "weights of the other class", "mean weight"],
)
def test_mutants_are_rejected(class_weight, drawn):
    p_value = p_value_of_draws(0.8, 2, class_weight, drawn=drawn)
    assert rejects(p_value, n_draws=20_000)


@pytest.fixture(scope="module")
def ripley():
    return NeighborGraph.from_points(load_ripley().X_train, k_max=13)


@pytest.mark.parametrize(
    "options",
    [{"n_classes": 3}, {"n_classes": 2, "class_weight": [1.0, 1.02]}],
)
def test_threads_and_number_of_draws_do_not_matter(ripley, options):
    one, info = perfect_labels(ripley, 1.0, 13, n_draws=25, key=KEY, **options)
    for n_jobs in (2, 3, 40):
        many, again = perfect_labels(ripley, 1.0, 13, n_draws=25, key=KEY, n_jobs=n_jobs, **options)
        np.testing.assert_array_equal(one, many)
        np.testing.assert_array_equal(info.n_sweeps, again.n_sweeps)
    few, _ = perfect_labels(ripley, 1.0, 13, n_draws=4, key=KEY, **options)
    np.testing.assert_array_equal(one[:4], few)
    assert len(np.unique(one, axis=0)) == 25


def test_info(ripley):
    labels, info = perfect_labels(ripley, 1.45, 13, 3, n_draws=20, key=KEY)
    assert labels.shape == (20, 250)
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(info.agreement, BoltzmannModel(ripley, 3).agreement(labels, 13))
    assert np.all(info.n_sweeps >= 4)
    labels, info = perfect_labels(ripley, 1.0, 13, 2, class_weight=WEIGHTS, key=KEY)
    expected = BoltzmannModel(ripley, 2, WEIGHTS).agreement(labels, 13)
    np.testing.assert_array_equal(info.agreement, expected)


def test_extremes(ripley):
    at_zero, _ = perfect_labels(ripley, 0.0, 13, 4, n_draws=200, key=KEY)
    np.testing.assert_allclose(np.bincount(at_zero.ravel()) / at_zero.size, 0.25, atol=0.02)
    frozen, info = perfect_labels(ripley, 1e300, 13, 300, n_draws=200, key=KEY)
    assert frozen.dtype == np.uint32
    assert np.all(frozen == frozen[:, :1])
    assert np.all(info.agreement == 250 * 13)
    assert frozen.max() > 255
    tiny, _ = perfect_labels(ripley, 5e-324, 13, 2, class_weight=WEIGHTS, n_draws=3, key=KEY)
    assert tiny.shape == (3, 250)


def test_equal_weights_scale_beta(ripley):
    weighted, _ = perfect_labels(ripley, 1.0, 13, 4, n_draws=3, class_weight=[1.5] * 4, key=KEY)
    plain, _ = perfect_labels(ripley, 1.5, 13, 4, n_draws=3, key=KEY)
    np.testing.assert_array_equal(weighted, plain)


def test_keys_give_different_draws(ripley):
    first, second = spawn_keys(1, 2)
    one, _ = perfect_labels(ripley, 0.5, 13, 2, key=first)
    two, _ = perfect_labels(ripley, 0.5, 13, 2, key=second)
    assert np.any(one != two)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_draw_rather_than_a_biased_one(ripley, n_jobs):
    with pytest.raises(CoalescenceError, match="raise max_sweeps, or use Swendsen-W") as caught:
        perfect_labels(ripley, 2.0, 13, 3, n_draws=5, key=KEY, n_jobs=n_jobs, max_sweeps=3)
    assert 0 < caught.value.n_apart <= 250
    assert caught.value.n_sweeps == 3
    assert f"{caught.value.n_apart} of 250 points" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).n_apart == caught.value.n_apart


def test_the_first_draw_that_fails_is_named(ripley):
    def draw(n_draws, max_sweeps, n_jobs=1):
        options = {"max_sweeps": max_sweeps, "n_jobs": n_jobs, "key": KEY}
        return perfect_labels(ripley, 1.45, 13, 4, n_draws=n_draws, **options)[0]

    longest = 1
    while True:
        try:
            labels = draw(30, longest)
            break
        except CoalescenceError as error:
            message, longest = str(error), longest + 1
    # A little too short a past fails at one of the draws, and those before it can be made.
    failed = int(message.split()[1])
    assert failed > 0
    np.testing.assert_array_equal(draw(failed, longest - 1), labels[:failed])
    for n_jobs in (1, 3):
        with pytest.raises(CoalescenceError, match=f"draw {failed} at beta=1.45, k=13") as caught:
            draw(30, longest - 1, n_jobs)
        assert caught.value.n_sweeps == longest - 1
    with pytest.raises(CoalescenceError):
        draw(failed + 1, longest - 1)
