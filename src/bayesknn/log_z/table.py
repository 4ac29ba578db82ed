"""The table of log Z(beta, k): the result of path sampling (Section 3.3).

It belongs to a graph, a number of classes and class weights, not to labels or a prior, so it is
computed once and serves any of those.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import BPoly

from bayesknn._utils.checks import check_count, check_k, check_positive
from bayesknn._utils.saving import reading
from bayesknn._version import __version__
from bayesknn.graph import NeighborGraph
from bayesknn.log_z.log_z import LogZ
from bayesknn.log_z.records import standard_error
from bayesknn.model.boltzmann import as_model, check_betas, check_class_weight

_FORMAT = "bayesknn path table 1"


@dataclass(frozen=True, eq=False)
class PathTable(LogZ):
    """log Z(beta, k) for k = 1..k_max and beta in [0, beta_max], with its Monte Carlo error.

    Made by :func:`bayesknn.likelihood.path_table`. To use it for labels and a prior, pass it to
    :class:`~bayesknn.likelihood.CoherentLikelihood`.

    Attributes
    ----------
    n_points, n_classes : int
    beta_max : float
    class_weight : ndarray of shape (n_classes,) or None
    betas : ndarray of shape (n_betas,)
        From 0 to ``beta_max``.
    log_normalizers, means, slopes : ndarray of shape (n_replicates, k_max, n_betas)
        log Z, E[S_k] / k and Var[S_k] / k**2, as estimated (row 0) and in resampled versions,
        whose spread is the Monte Carlo error.
    closure : ndarray of shape (k_max,)
        The gap between log Z integrated from beta = 0 and log Z found at the far end, in standard
        errors: about normal if all is well. NaN where log Z was computed exactly or comes from
        the k next to it.
    is_exact : ndarray of shape (k_max,), dtype bool
        Where log Z was computed by variable elimination.
    fingerprint : ndarray of shape (k_max,), dtype uint64
        Of each rank of the graph, the number of classes and the class weights.
    n_sweeps : int
        Sweeps made in all.
    k_probabilities, k_probabilities_error : ndarray of shape (k_max,), or of length 0
        P(k | y) of the labels for which the table was made, if any, under the prior that was given
        with them, and its Monte Carlo error.
    warnings : tuple of str
    """

    n_points: int
    n_classes: int
    beta_max: float
    class_weight: np.ndarray | None
    betas: np.ndarray
    log_normalizers: np.ndarray
    means: np.ndarray
    slopes: np.ndarray
    closure: np.ndarray
    is_exact: np.ndarray
    fingerprint: np.ndarray
    n_sweeps: int = 0
    k_probabilities: np.ndarray = field(default_factory=lambda: np.empty(0))
    k_probabilities_error: np.ndarray = field(default_factory=lambda: np.empty(0))
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count(self.n_points, "n_points")
        check_count(self.n_classes, "n_classes", 2)
        check_count(self.n_sweeps, "n_sweeps", 0)
        check_positive(self.beta_max, "beta_max")
        check_class_weight(self.class_weight, self.n_classes)
        n_betas = check_betas(self.betas, "betas").size
        shape = np.shape(self.log_normalizers)
        k_max = shape[1] if len(shape) == 3 else 0
        for name in ("log_normalizers", "means", "slopes"):
            if k_max == 0 or np.shape(getattr(self, name)) != (shape[0], k_max, n_betas):
                raise ValueError(
                    f"{name} must have shape (n_replicates, k_max, {n_betas}), "
                    f"got {np.shape(getattr(self, name))}"
                )
        for name in ("closure", "is_exact", "fingerprint"):
            if np.shape(getattr(self, name)) != (k_max,):
                raise ValueError(f"{name} must have an entry for each k in 1..{k_max}")

    @property
    def k_max(self) -> int:
        """Largest k served."""
        return self.log_normalizers.shape[1]

    def __repr__(self) -> str:
        return (
            f"PathTable(n_points={self.n_points}, n_classes={self.n_classes}, "
            f"k_max={self.k_max}, beta_max={self.beta_max:g})"
        )

    def _spline(self, where: Any) -> BPoly:
        """Return the curve between the nodes for some replicates and k."""
        values, means = self.log_normalizers[where], self.means[where]
        parts = np.stack([values, means, self.slopes[where]])
        return BPoly.from_derivatives(self.betas, np.moveaxis(parts, -1, 0))

    @cached_property
    def _estimates(self) -> list[BPoly]:
        # Each is computed once, because chains ask often.
        return [self._spline((0, row)) for row in range(self.k_max)]

    def log_normalizer(self, beta: Any, k: int) -> Any:
        """Return log Z(beta, k).

        Parameters
        ----------
        beta : float or array-like
            In [0, beta_max].
        k : int

        Returns
        -------
        float, or ndarray of the shape of ``beta``
        """
        betas, k = self._check(beta, k)
        return _unwrap(self._estimates[k - 1](betas))

    def replicates(self, beta: Any, k: int) -> np.ndarray:
        """Return log Z(beta, k) as estimated, in row 0, and in resampled versions of it.

        Replicate r of one (beta, k) belongs with replicate r of any other: they share the
        simulations from which they were resampled. The standard deviation over the replicates of
        anything computed from log Z is its Monte Carlo error.

        Parameters
        ----------
        beta : float or array-like
        k : int

        Returns
        -------
        ndarray of shape (n_replicates,) + shape of ``beta``
        """
        betas, k = self._check(beta, k)
        return np.moveaxis(self._spline((slice(None), k - 1))(betas), -1, 0)

    def error(self, beta: Any, k: int) -> Any:
        """Return the Monte Carlo standard error of log Z(beta, k).

        Returns
        -------
        float, or ndarray of the shape of ``beta``
        """
        return _unwrap(standard_error(self.replicates(beta, k)))

    def check_graph(
        self, graph: NeighborGraph, n_classes: int | None = None, class_weight: Any = None
    ) -> None:
        """Raise ``ValueError`` unless the table was made for this graph and these classes.

        Parameters
        ----------
        graph : NeighborGraph
            It may serve more or fewer k than the table.
        n_classes : int, optional
            By default that of the table.
        class_weight : array-like of shape (n_classes,), optional
        """
        graph = as_model(graph, n_classes or self.n_classes).graph
        if graph.n_points != self.n_points:
            raise ValueError(
                f"the table of log Z was made for {self.n_points} points, the graph has "
                f"{graph.n_points}: make a new table with path_table"
            )
        if n_classes is not None and n_classes != self.n_classes:
            raise ValueError(
                f"the table of log Z was made for {self.n_classes} classes, not for {n_classes}: "
                "make a new table with path_table"
            )
        k_max = min(graph.k_max, self.k_max)
        fingerprint = take_fingerprint(graph, k_max, self.n_classes, class_weight)
        other = np.flatnonzero(fingerprint != self.fingerprint[:k_max])
        if len(other):
            raise ValueError(
                "the table of log Z was made for another neighbour graph or other class weights "
                f"(they differ at k={other[0] + 1}): make a new table with path_table"
            )

    def save(self, path: Any) -> None:
        """Write the table to a file (NumPy's npz, no pickles).

        Parameters
        ----------
        path : str or path-like
            Used as it is: no extension is added.
        """
        arrays = {each.name: getattr(self, each.name) for each in fields(self)}
        arrays["class_weight"] = np.empty(0) if self.class_weight is None else self.class_weight
        arrays["warnings"] = np.array(self.warnings, dtype=str)
        with open(path, "wb") as file:
            np.savez_compressed(file, format=_FORMAT, version=__version__, **arrays)

    @classmethod
    def load(cls, path: Any) -> PathTable:
        """Read a table that :meth:`save` wrote.

        Parameters
        ----------
        path : str or path-like

        Returns
        -------
        PathTable
        """
        try:
            # Opened here, because NumPy leaves a damaged archive open.
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays: dict[str, Any] = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            raise
        except Exception as error:
            # A damaged archive raises whatever its first bad byte leads to.
            raise _refusal(path) from error
        with reading(f"the table {path}", arrays.pop("version", None)):
            try:
                if str(arrays.pop("format")) != _FORMAT:
                    raise ValueError
                for name in ("n_points", "n_classes", "beta_max", "n_sweeps"):
                    arrays[name] = arrays[name].item()
                if arrays["class_weight"].size == 0:
                    arrays["class_weight"] = None
                arrays["warnings"] = tuple(arrays["warnings"].tolist())
                return cls(**arrays)
            except Exception as error:
                raise _refusal(path) from error

    def _check(self, beta: Any, k: Any) -> tuple[np.ndarray, int]:
        betas, k = check_betas(beta), check_k(k, self.k_max, "this table")
        if betas.size and betas.max() > self.beta_max * (1 + 1e-12):
            raise ValueError(
                f"beta must lie in [0, {self.beta_max:g}], the range of this table, "
                f"got {betas.max():g}"
            )
        return betas, k


def take_fingerprint(
    graph: NeighborGraph, k_max: int, n_classes: int, class_weight: Any
) -> np.ndarray:
    """Return a digest, for each rank, of all that log Z depends on.

    Examples
    --------
    >>> from bayesknn.graph import NeighborGraph
    >>> from bayesknn.log_z.table import take_fingerprint
    >>> ring = NeighborGraph.from_neighbors([[1, 2, 3, 0], [2, 3, 0, 1]])
    >>> other = NeighborGraph.from_neighbors([[1, 2, 3, 0], [3, 0, 1, 2]])
    >>> take_fingerprint(ring, 2, 2, None) == take_fingerprint(other, 2, 2, None)
    array([ True, False])
    """
    weights = check_class_weight(class_weight, n_classes)
    weights = np.ones(n_classes) if weights is None else weights
    head = np.array([graph.n_points, n_classes], dtype="<i8").tobytes()
    head += weights.astype("<f8").tobytes()
    digests = [
        hashlib.blake2b(head + np.ascontiguousarray(rank, dtype="<u4").tobytes(), digest_size=8)
        for rank in graph.neighbors[:k_max]
    ]
    return np.array([int.from_bytes(digest.digest(), "little") for digest in digests], np.uint64)


def _unwrap(values: np.ndarray) -> Any:
    return float(values) if values.ndim == 0 else values


def _refusal(path: Any) -> ValueError:
    return ValueError(
        f"{path} is not a table of log Z written by PathTable.save, or it is damaged: make it "
        "again with path_table"
    )
