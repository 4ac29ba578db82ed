"""The place of a new point in the lists of those whom it may join."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesknn.graph.reach import _enter


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 140))
def test_places_are_those_of_a_plain_search(seed, width):
    rng = np.random.default_rng(seed)
    lists = np.sort(rng.integers(0, 2 * width, size=(20, width)), axis=1).astype(float)
    members = rng.integers(0, 20, size=70).astype(np.uint64)
    distances = rng.integers(-1, 2 * width + 1, size=70).astype(float)
    places = np.empty(70, np.uint64)
    _enter(lists, members, distances, 70, places)
    expected = [
        np.searchsorted(lists[i], d, side="right") for i, d in zip(members, distances, strict=True)
    ]
    np.testing.assert_array_equal(places, expected)
