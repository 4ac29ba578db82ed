"""The neighbour graph: metrics, search, every k as a prefix, queries about new points."""

from bayesknn.graph.incidence import Incidence
from bayesknn.graph.neighbor_graph import NeighborGraph, describe_search
from bayesknn.graph.query import NeighborQuery

__all__ = ["Incidence", "NeighborGraph", "NeighborQuery", "describe_search"]
