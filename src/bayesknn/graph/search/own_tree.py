"""Euclidean distances: the package's KD-tree, and all pairs by matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesknn.graph.kdsearch import nearest_in_tree
from bayesknn.graph.kdtree import KDTree, build_tree
from bayesknn.graph.reach import Reach
from bayesknn.graph.reverse import reverse_in_tree
from bayesknn.graph.rounded import Rounded, round_tree
from bayesknn.graph.search.blocked import nearest_by_products
from bayesknn.graph.search.every_pair import rank_some
from bayesknn.graph.search.search_index import Advance, Lists, Reverse, SearchIndex


class TreeSearch(SearchIndex):
    """The package's KD-tree, which also holds the points."""

    name = "kd_tree"
    _tree: KDTree
    _rounded: Rounded | None = None

    def _build(self, points: np.ndarray) -> None:
        self._tree = build_tree(points, self.ties)
        self._rounded = None

    @property
    def tree(self) -> KDTree:
        """The tree."""
        return self._tree

    @property
    def rounded(self) -> Rounded:
        """The tree's points in single precision."""
        if self._rounded is None:
            self._rounded = round_tree(self._tree)
        return self._rounded

    @property
    def points(self) -> np.ndarray:
        """The training points, taken out of the tree."""
        return self._tree.points()

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Walk the tree, a block of 64 points at a time."""
        return nearest_in_tree(self._tree, None, k, n_jobs, advance, rounded=self.rounded)

    def query(
        self, rows: Any, k: int, reach: Reach | None, n_jobs: int | None = None
    ) -> tuple[Lists, Reverse | None]:
        """Walk the tree for new points, which come as a tree of their own."""
        queries = build_tree(rows)
        forward = nearest_in_tree(self._tree, queries, k, n_jobs, rounded=self.rounded)
        if reach is None:
            return forward, None
        return forward, reverse_in_tree(self._tree, reach, queries, n_jobs, self.rounded)

    def by_products(self) -> ProductSearch:
        """Return the same tree with products for the training points' own lists."""
        other = ProductSearch.__new__(ProductSearch)
        other.__dict__.update(vars(self))
        return other


class ProductSearch(TreeSearch):
    """Matrix products among all points, where a tree can skip nothing; the tree for new ones."""

    name = "blocked"

    def neighbors(self, k: int, n_jobs: int | None = None, advance: Advance | None = None) -> Lists:
        """Measure candidates from products, or walk the tree where they tell too few apart."""
        neighbors, distances, left = nearest_by_products(self._tree, k, n_jobs, advance)
        if len(left) == self.n_points:
            return super().neighbors(k, n_jobs, advance)
        if len(left) > 0:
            rows = left.astype(np.uint32)
            rank_some(self.metric, self.points, self.ties, rows, neighbors, distances)
        return neighbors, distances
