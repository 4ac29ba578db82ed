"""The prior on (beta, k): uniform on {1..K} x [0, beta_max] unless the user says otherwise.

Section 3: K is at most the smallest class size, and beta_max keeps the model away from the phase
transition (see ``phase.py``). A prior is anything with ``k_max``, ``beta_max`` and a vectorised
``log_density(beta, k)``; :func:`as_prior` makes one from ``None``, an array or a function. All
densities here are normalised, so that the evidence means the same under each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn.model.checks import check_label_vector, check_n_classes

# Panels of [0, beta_max], and Gauss-Legendre points in each, that normalise a given function.
_N_PANELS = 64
_N_NODES = 8


@runtime_checkable
class Prior(Protocol):
    """What the posterior asks of a prior on {1..k_max} x [0, beta_max]."""

    @property
    def k_max(self) -> int:
        """Largest k."""

    @property
    def beta_max(self) -> float:
        """Largest beta."""

    def log_density(self, beta: Any, k: Any) -> np.ndarray:
        """Return the log density at (beta, k), broadcast; minus infinity outside the range."""


@dataclass(frozen=True)
class UniformPrior:
    """The same density everywhere on {1..k_max} x [0, beta_max].

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.model import UniformPrior
    >>> prior = UniformPrior(k_max=125, beta_max=4.0)
    >>> np.exp(-prior.log_density(beta=[1.0, 5.0], k=3)).round(6).tolist()
    [500.0, inf]
    """

    k_max: int
    beta_max: float

    def __post_init__(self) -> None:
        _check_range(self)

    def log_density(self, beta: Any, k: Any) -> np.ndarray:
        """Return the log density at (beta, k), broadcast; minus infinity outside the range."""
        inside = _is_inside(self, beta, k)
        return np.where(inside, -np.log(self.k_max * self.beta_max), -np.inf)


@dataclass(frozen=True)
class ArrayPrior:
    """A density given by numbers: for each k, or for each k on a grid of beta.

    Parameters
    ----------
    values : array-like of shape (k_max,) or (k_max, n_betas)
        Not negative; they need not sum to one. Row k - 1 belongs to k. With two dimensions, the
        columns stand for ``n_betas`` equally spaced values of beta from 0 to ``beta_max``, and
        the density is linear between them; with one, it does not depend on beta.
    beta_max : float

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.model import ArrayPrior
    >>> prior = ArrayPrior([2.0, 1.0, 1.0], beta_max=4.0)
    >>> np.exp(prior.log_density(beta=1.0, k=[1, 2, 3, 4])).round(6).tolist()
    [0.125, 0.0625, 0.0625, 0.0]
    """

    values: np.ndarray
    beta_max: float
    k_max: int = field(init=False)

    def __post_init__(self) -> None:
        try:
            values = np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("prior must be an array of numbers, a function or None") from None
        one_column = values.ndim == 2 and values.shape[1] < 2
        if values.ndim not in (1, 2) or values.size == 0 or one_column:
            raise ValueError(
                "prior must have shape (k_max,), or (k_max, n_betas) with at least 2 columns, "
                f"got {values.shape}"
            )
        object.__setattr__(self, "k_max", len(values))
        _check_range(self)
        _check_density(values, lambda where: _name_cell(where, values, self.beta_max))
        if values.ndim == 1:
            mass = values.sum() * self.beta_max
        else:
            mass = np.trapezoid(values, dx=self.beta_max / (values.shape[1] - 1), axis=1).sum()
        values /= mass
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def log_density(self, beta: Any, k: Any) -> np.ndarray:
        """Return the log density at (beta, k), broadcast; minus infinity outside the range."""
        inside = _is_inside(self, beta, k)
        beta, k = np.broadcast_arrays(np.asarray(beta, dtype=np.float64), np.asarray(k))
        row = np.where(inside, k, 1).astype(np.int64) - 1
        if self.values.ndim == 1:
            density = self.values[row]
        else:
            last = self.values.shape[1] - 1
            place = np.where(inside, beta, 0.0) * (last / self.beta_max)
            column = np.minimum(place.astype(np.int64), last - 1)
            share = place - column
            density = self.values[row, column] * (1 - share) + self.values[row, column + 1] * share
        return _log(np.where(inside, density, 0.0))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ArrayPrior)
            and self.beta_max == other.beta_max
            and np.array_equal(self.values, other.values)
        )

    def __hash__(self) -> int:
        return hash((self.beta_max, self.values.tobytes()))


@dataclass(frozen=True)
class FunctionPrior:
    """A density given by a function of (beta, k).

    Parameters
    ----------
    function : callable
        ``function(beta, k)``: not negative, need not integrate to one. It is called with arrays
        if it can take them, otherwise number by number. To send the prior to other processes the
        function must be importable there.
    k_max : int
    beta_max : float

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.model import FunctionPrior
    >>> prior = FunctionPrior(lambda beta, k: np.exp(-beta) / k, k_max=2, beta_max=4.0)
    >>> ratio = np.exp(prior.log_density(1.0, 1) - prior.log_density(1.0, 2))
    >>> round(float(ratio), 6)
    2.0
    """

    function: Callable[[Any, Any], Any]
    k_max: int
    beta_max: float
    log_mass: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_range(self)
        nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
        panel = self.beta_max / _N_PANELS
        beta = (panel * (np.arange(_N_PANELS)[:, None] + (nodes + 1) / 2)).ravel()
        k = np.arange(1, self.k_max + 1)[:, None]
        density = self._call(*np.broadcast_arrays(beta, k))
        _check_density(density, lambda where: f"k={where[0] + 1}, beta={beta[where[1]]:.4g}")
        mass = (density @ np.tile(weights, _N_PANELS)).sum() * panel / 2
        object.__setattr__(self, "log_mass", float(np.log(mass)))

    def log_density(self, beta: Any, k: Any) -> np.ndarray:
        """Return the log density at (beta, k), broadcast; minus infinity outside the range."""
        inside = np.atleast_1d(_is_inside(self, beta, k))
        beta, k = np.broadcast_arrays(np.asarray(beta, dtype=np.float64), np.asarray(k))
        beta_inside = np.atleast_1d(beta)[inside]
        k_inside = np.atleast_1d(k)[inside].astype(np.int64)
        density = np.zeros(inside.shape)
        if inside.any():
            values = self._call(beta_inside, k_inside)
            _check_density(
                values,
                lambda where: f"k={k_inside[where]}, beta={beta_inside[where]:.4g}",
                may_vanish=True,
            )
            density[inside] = values
        return (_log(density) - self.log_mass).reshape(beta.shape)

    def _call(self, beta: np.ndarray, k: np.ndarray) -> np.ndarray:
        try:
            result = np.asarray(self.function(beta, k), dtype=np.float64)
            return np.broadcast_to(result, beta.shape)
        except (TypeError, ValueError):
            # The function was written for numbers, with `if` or the math module.
            pairs = zip(beta.ravel().tolist(), k.ravel().tolist(), strict=True)
            values = [float(self.function(b, j)) for b, j in pairs]
            return np.reshape(values, beta.shape)


def as_prior(prior: Any, k_max: int, beta_max: float | None = None) -> Prior:
    """Make a prior on {1..k_max} x [0, beta_max] of what the user passed.

    Parameters
    ----------
    prior : None, array-like, callable or Prior
        ``None`` is uniform. See :class:`ArrayPrior` and :class:`FunctionPrior`.
    k_max : int
        The largest k there is.
    beta_max : float, optional
        Needed unless ``prior`` is a :class:`Prior`, which knows it and must not be contradicted.

    Returns
    -------
    Prior

    Examples
    --------
    >>> from bayesknn.model import as_prior
    >>> as_prior(None, k_max=10, beta_max=4.0)
    UniformPrior(k_max=10, beta_max=4.0)
    """
    if isinstance(prior, Prior):
        if beta_max is not None and beta_max != prior.beta_max:
            raise ValueError(
                f"beta_max={beta_max!r} contradicts the prior, which reaches "
                f"beta={prior.beta_max:g}; leave beta_max out"
            )
        if prior.k_max > k_max:
            raise ValueError(
                f"the prior reaches k={prior.k_max}, but k is at most {k_max} here; lower k_max of "
                "the prior or build the graph with more neighbours"
            )
        return prior
    if beta_max is None:
        raise ValueError("beta_max must be given unless prior is a Prior that knows it")
    if prior is None:
        return UniformPrior(k_max, beta_max)
    if callable(prior):
        return FunctionPrior(prior, k_max, beta_max)
    made = ArrayPrior(prior, beta_max)
    if made.k_max != k_max:
        raise ValueError(
            f"prior must have {k_max} rows, one for each k in 1..{k_max}, got {made.k_max}"
        )
    return made


def default_max_neighbors(labels: Any, n_classes: int) -> int:
    """Return K: the size of the smallest class, at most n - 1.

    Examples
    --------
    >>> from bayesknn.model import default_max_neighbors
    >>> default_max_neighbors([0, 0, 0, 1, 1], n_classes=2)
    2
    """
    n_classes = check_n_classes(n_classes)
    labels = check_label_vector(labels, len(np.atleast_1d(np.asarray(labels))), n_classes)
    sizes = np.bincount(labels, minlength=n_classes)
    if not sizes.all():
        raise ValueError(f"class {int(np.argmin(sizes))} has no points, so no k is allowed")
    return min(int(sizes.min()), len(labels) - 1)


def _check_range(prior: Any) -> None:
    """Normalise the fields that every prior has."""
    object.__setattr__(prior, "k_max", check_count(prior.k_max, "k_max"))
    try:
        beta_max = float(prior.beta_max)
    except (TypeError, ValueError):
        raise ValueError(f"beta_max must be a number, got {prior.beta_max!r}") from None
    if not (np.isfinite(beta_max) and beta_max > 0):
        raise ValueError(f"beta_max must be positive and finite, got {beta_max}")
    object.__setattr__(prior, "beta_max", beta_max)


def _is_inside(prior: Any, beta: Any, k: Any) -> np.ndarray:
    beta = np.asarray(beta, dtype=np.float64)
    k = np.asarray(k)
    whole = (k >= 1) & (k <= prior.k_max) & (k == np.floor(k))
    return (beta >= 0) & (beta <= prior.beta_max) & whole


def _check_density(values: np.ndarray, name: Callable, may_vanish: bool = False) -> None:
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        where = np.unravel_index(int(np.argmax(bad)), values.shape)
        raise ValueError(
            f"prior must be finite and not negative, got {values[where]} at {name(where)}"
        )
    if not may_vanish and not values.any():
        raise ValueError("prior is zero everywhere")


def _name_cell(where: tuple, values: np.ndarray, beta_max: float) -> str:
    if len(where) == 1:
        return f"k={where[0] + 1}"
    return f"k={where[0] + 1}, beta={beta_max * where[1] / (values.shape[1] - 1):.4g}"


def _log(density: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(density)
