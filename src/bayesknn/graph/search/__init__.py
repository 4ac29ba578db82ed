"""Neighbour search: one protocol, several back ends.

Whatever finds the candidates, they are ordered by (distance, key of the row) on distances that
come from the metric's one formula: exact back ends give the same lists to the bit.
"""

from bayesknn.graph.search.back_ends import build_index
from bayesknn.graph.search.kd_tree import (
    LEAF,
    KDTree,
    Queries,
    TreeRadii,
    arrange_queries,
    build_tree,
    measure_radii,
    nearest_in_tree,
    reverse_in_tree,
)
from bayesknn.graph.search.search_index import SearchIndex

__all__ = [
    "LEAF",
    "KDTree",
    "Queries",
    "SearchIndex",
    "TreeRadii",
    "arrange_queries",
    "build_index",
    "build_tree",
    "measure_radii",
    "nearest_in_tree",
    "reverse_in_tree",
]
