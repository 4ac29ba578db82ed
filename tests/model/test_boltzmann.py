"""The model as a value: what it holds cannot change, and says what the functions say."""

import dataclasses

import numpy as np
import pytest

from bayesknn.graph import NeighborGraph
from bayesknn.labels import find_beta_max, sample_labels
from bayesknn.model import BoltzmannModel
from tests.model.enumeration import exact_law, state_index
from tests.model.graphs import random_graph, ring

WEIGHTS = [None, [1.0, 1.0, 1.0], [2.5, 2.5, 2.5], [0.5, 1.0, 2.0]]


# numpy 2.0 makes a number of an array of one entry unless its warning is an error, as in tests.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("k_max", [1, 2])
def test_the_statistic_has_an_axis_for_k_however_many_there_are(k_max):
    model = BoltzmannModel(random_graph(np.random.default_rng(3), n=5, k_max=k_max), 2)
    labels = np.array([0, 1, 1, 0, 1])
    assert model.agreement(labels).shape == (k_max,)
    assert model.agreement(labels[None]).shape == (1, k_max)
    assert model.agreement(labels[None], 1).shape == (1,)
    assert isinstance(model.agreement(labels, 1), float)


def test_conditional_is_that_of_the_exact_law():
    graph = random_graph(np.random.default_rng(2), n=4, k_max=2)
    model = BoltzmannModel(graph, 3, [0.5, 1.0, 2.0])
    _, law = exact_law(graph, 1.3, 2, 3, model.class_weight)
    labels = np.array([0, 2, 1, 1])
    for i in range(4):
        rows = np.tile(labels, (3, 1))
        rows[:, i] = [0, 1, 2]
        expected = law[state_index(rows, 3)]
        found = model.conditional(labels, 1.3, 2)[i]
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_common_and_unequal_weights_are_the_same_model(weights):
    """S with the weights is common_weight times S with unequal_weight, whichever is in use."""
    graph = random_graph(np.random.default_rng(1), n=8, k_max=3)
    model = BoltzmannModel(graph, 3, weights)
    labels = np.random.default_rng(2).integers(3, size=8)
    plain = BoltzmannModel(graph, 3, model.unequal_weight).agreement(labels, 2)
    assert model.common_weight * plain == pytest.approx(model.agreement(labels, 2), rel=1e-14)
    assert (model.unequal_weight is None) == (weights is None or len(set(weights)) == 1)
    np.testing.assert_array_equal(model.weights, np.ones(3) if weights is None else weights)


def test_nothing_in_a_model_can_be_changed():
    weight, fixed = np.array([0.5, 2.0]), np.array([0, -1, 1])
    model = BoltzmannModel(ring(3), 2, weight, fixed)
    before = model.fingerprint
    weight[:], fixed[:] = 9.0, 0
    assert model.class_weight.tolist() == [0.5, 2.0] and model.fixed.tolist() == [0, -1, 1]
    with pytest.raises(ValueError, match="read-only"):
        model.class_weight[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.n_classes = 3
    assert (
        model.fingerprint
        == before
        == BoltzmannModel(ring(3), 2, [0.5, 2.0], [0, -1, 1]).fingerprint
    )


def test_the_fingerprint_tells_models_apart():
    models = [
        BoltzmannModel(ring(4), 2),
        BoltzmannModel(ring(5), 2),
        BoltzmannModel(ring(4), 3),
        BoltzmannModel(ring(4), 2, [1.0, 2.0]),
        BoltzmannModel(ring(4), 2, None, [0, -1, -1, -1]),
        BoltzmannModel(ring(4), 2, None, [1, -1, -1, -1]),
        BoltzmannModel(NeighborGraph.from_neighbors([[3, 0, 1, 2]]), 2),
    ]
    assert len({model.fingerprint for model in models}) == len(models)


def test_fixed_labels():
    model = BoltzmannModel(ring(4), 3)
    assert model.fixed is None and model.is_free.all()
    some = model.fix([-1, 2, -1, 0])
    assert some.is_free.tolist() == [True, False, True, False]
    assert model.fixed is None
    assert some.fix([-1, -1, -1, -1]).fixed is None
    assert np.all(sample_labels(some, 1.0, 1, n_draws=9, random_state=0)[:, [1, 3]] == [2, 0])
    with pytest.raises(ValueError, match="labels of the BoltzmannModel are fixed"):
        find_beta_max(some)
    for method in ("gibbs", "perfect"):
        with pytest.raises(ValueError, match="fixed labels need method='swendsen-wang'"):
            sample_labels(some, 1.0, 1, method=method)
    for bad in ([0, 1], [0, 1, 3, -1], [0, 1, -2, -1], [0.5, 1, 1, 1]):
        with pytest.raises(ValueError, match=r"(labels|fixed) must (hold|be)"):
            model.fix(bad)


def test_public_functions_take_a_graph_or_a_model():
    model = BoltzmannModel(ring(4), 2, [1.0, 2.0])
    of_graph, of_model, with_classes = (
        sample_labels(*arguments, n_draws=20, random_state=0)
        for arguments in ((ring(4), 1.0, 1, 2), (model, 1.0, 1), (model, 1.0, 1, 2))
    )
    np.testing.assert_array_equal(of_model, with_classes)
    assert not np.array_equal(of_graph, of_model)
    of_graph = sample_labels(ring(4), 1.0, 1, 2, "swendsen-wang", 20, None, 0, [1.0, 2.0])
    np.testing.assert_array_equal(of_graph, of_model)
    with pytest.raises(ValueError, match="pass no others"):
        sample_labels(model, 1.0, 1, 3)
    with pytest.raises(ValueError, match="pass no others"):
        sample_labels(model, 1.0, 1, 2, class_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="n_classes must be given"):
        sample_labels(ring(4), 1.0, 1)
    with pytest.raises(ValueError, match="class_weight must hold 2"):
        sample_labels(ring(4), 1.0, 1, 2, class_weight=[1.0])
