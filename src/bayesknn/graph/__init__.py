"""The neighbour graph: metrics, exact search, every k as a prefix, queries about new points."""

from bayesknn.graph.incidence import Incidence
from bayesknn.graph.neighbor_graph import NeighborGraph
from bayesknn.graph.query import NeighborQuery

__all__ = ["Incidence", "NeighborGraph", "NeighborQuery"]
