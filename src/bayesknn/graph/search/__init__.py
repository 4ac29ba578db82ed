"""Neighbour search: one protocol, several back ends.

Whatever finds the candidates, they are ordered by (distance, key of the row) on distances that
come from the metric's one formula: exact back ends give the same lists to the bit.
"""

from bayesknn.graph.search.back_ends import build_index
from bayesknn.graph.search.search_index import Recall, SearchIndex

__all__ = ["Recall", "SearchIndex", "build_index"]
