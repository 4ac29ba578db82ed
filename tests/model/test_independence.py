"""Var[S_k] at beta = 0 against the list of all label vectors."""

import numpy as np
from hypothesis import given

from bayesknn.model import agreement, agreement_variance_at_zero
from tests.model.enumeration import list_states
from tests.model.graphs import small_models


@given(small_models(max_states=1024))
def test_variance_at_zero_is_that_of_all_label_vectors(model):
    graph, _, k, n_classes, weights = model
    states = list_states(graph.n_points, n_classes)
    expected = np.var(agreement(graph, states, k, class_weight=weights))
    assert np.isclose(agreement_variance_at_zero(graph, k, n_classes, weights), expected)
