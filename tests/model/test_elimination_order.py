"""Min-fill orders and plans against an elimination done with sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn.graph import NeighborGraph
from bayesknn.model import plan_elimination
from tests.model.graphs import complete, random_graph, ring, ripley_graph


def neighbor_sets(graph, k):
    sets = {i: set() for i in range(graph.n_points)}
    for i in range(graph.n_points):
        for j in graph.neighbors[:k, i].tolist():
            sets[i].add(j)
            sets[j].add(i)
    return sets


def count_fill(sets, i):
    return sum(b not in sets[a] for a, b in itertools.combinations(sets[i], 2))


def eliminate(sets, i):
    """Join the neighbours of i and take it out; return them."""
    scope = sets.pop(i)
    for a in scope:
        sets[a] |= scope
        sets[a] -= {a, i}
    return scope


@st.composite
def random_graphs(draw):
    n = draw(st.integers(2, 40))
    k_max = draw(st.integers(1, min(4, n - 1)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_graph(rng, n, k_max), k_max


@given(random_graphs())
def test_each_step_takes_a_point_of_least_fill(model):
    graph, k = model
    plan = plan_elimination(graph, k, 2)
    sets = neighbor_sets(graph, k)
    component = {}
    for i in range(graph.n_points):
        component.setdefault(i, {i})
        for j in sets[i]:
            union = component[i] | component.get(j, {j})
            component.update(dict.fromkeys(union, union))
    assert sorted(plan.order.tolist()) == list(range(graph.n_points))
    widths = []
    for i in plan.order.tolist():
        rivals = [j for j in component[i] if j in sets]
        assert count_fill(sets, i) == min(count_fill(sets, j) for j in rivals)
        widths.append(len(eliminate(sets, i)))
    assert plan.width == max(widths)


@given(random_graphs(), st.integers(2, 4))
def test_the_plan_tells_what_its_order_does(model, n_classes):
    graph, k = model
    plan = plan_elimination(graph, k, n_classes)
    position = {i: s for s, i in enumerate(plan.order.tolist())}
    sets = neighbor_sets(graph, k)
    waiting, peak, n_entries = [], 0, 0
    for s, i in enumerate(plan.order.tolist()):
        scope = sorted(eliminate(sets, i), key=position.get)
        assert plan.scopes[s] == scope
        size = n_classes ** len(scope)
        n_entries += n_classes * size
        peak = max(peak, sum(n_classes ** len(table) for table in waiting) + 3 * size)
        # The tables that mention i are those that it is the first point of.
        assert all((i in table) == (i == table[0]) for table in waiting)
        waiting = [table for table in waiting if table[0] != i] + [scope] * bool(scope)
    assert not waiting
    assert plan.peak_entries == peak
    assert plan.n_entries == n_entries
    assert plan.width == max(map(len, plan.scopes))


def test_known_widths():
    chain = NeighborGraph.from_neighbors([[1, 2, 3, 4, 5, 4]])
    assert plan_elimination(chain, 1, 2).width == 1
    assert plan_elimination(ring(70), 1, 2).width == 2
    assert plan_elimination(complete(9), 8, 3).width == 8
    grid = NeighborGraph.from_neighbors(
        [[i + 1 if i % 5 < 4 else i - 1 for i in range(25)], [(i + 5) % 25 for i in range(25)]]
    )
    assert 5 <= plan_elimination(grid, 2, 2).width <= 10


def test_components_are_ordered_one_by_one():
    points = np.concatenate([np.arange(6.0), 100 + np.arange(7.0)])[:, None]
    graph = NeighborGraph.from_points(points, k_max=2)
    order = plan_elimination(graph, 2, 2).order
    assert set(order[:6].tolist()) in ({0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11, 12}) or set(
        order[:7].tolist()
    ) == set(range(6, 13))


def test_a_plan_on_ripley_stays_small():
    widths = {k: plan_elimination(ripley_graph(), k, 2).width for k in (1, 3, 5, 10)}
    assert widths[1] == 1
    assert widths[3] <= 8
    assert widths[5] <= 12
    assert widths[10] <= 26


def test_hopeless_widths_are_refused():
    message = (
        r"k=60 has induced width (8|9)\d, a table of 2\^(8|9)\d entries: more than any machine"
    )
    with pytest.raises(ValueError, match=message):
        plan_elimination(ripley_graph(), 60, 2)


def test_huge_components_are_refused(monkeypatch):
    monkeypatch.setattr("bayesknn.model.elimination._MAX_COMPONENT", 20)
    with pytest.raises(ValueError, match="k=1 has a connected component of 21 points, too many"):
        plan_elimination(ring(21), 1, 2)
    assert plan_elimination(ring(20), 1, 2).width == 2
