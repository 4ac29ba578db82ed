"""The neighbour graph: metrics, search, every k as a prefix, queries about new points."""

from bayesknn.graph.base import Graph
from bayesknn.graph.neighbor_graph import Incidence, NeighborGraph, find_components
from bayesknn.graph.queries import NeighborQuery

__all__ = [
    "Graph",
    "Incidence",
    "NeighborGraph",
    "NeighborQuery",
    "find_components",
]
