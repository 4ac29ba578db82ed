"""The neighbour graph: metrics, search, every k as a prefix, queries about new points."""

from bayesknn.graph.base import Graph
from bayesknn.graph.neighbor_graph import Incidence, NeighborGraph, describe_search, find_components
from bayesknn.graph.queries import NeighborQuery

__all__ = [
    "Graph",
    "Incidence",
    "NeighborGraph",
    "NeighborQuery",
    "describe_search",
    "find_components",
]
