"""The prior on (beta, k): uniform on {1..K} x [0, beta_max] unless the user says otherwise.

Section 3: the paper's K is at most the smallest class size (see :func:`default_max_neighbors`), and
beta_max keeps the model away from the phase transition (see ``labels/beta_max.py``). A prior is
anything with ``k_max``, ``beta_max`` and a vectorised ``log_density(beta, k)``; :func:`as_prior`
makes one from ``None``, an array or a function. All densities here are normalised, so that the
evidence means the same under each. Where a prior has its mass is found from its values
(:func:`find_mass`), and every integral over beta begins there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.special import logsumexp, softmax

from bayesknn._utils.checks import as_floats, check_count, check_positive
from bayesknn.model.frequencies import check_sizes
from bayesknn.model.integration import (
    N_NODES,
    N_PANELS,
    find_panels,
    integrate,
    place_cells,
    place_nodes,
)

# Panels of [0, beta_max] on which a prior is looked at, and where that finds nothing at a k: a
# narrower prior than an eighth of a panel may be missed, and each panel is eight calls.
_N_PANELS, _N_FINE_PANELS = 64, 512


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


@dataclass(frozen=True, eq=False)
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
            part = place - column
            density = self.values[row, column] * (1 - part) + self.values[row, column + 1] * part
        return _log(np.where(inside, density, 0.0))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrayPrior):
            return False
        return self.beta_max == other.beta_max and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.beta_max, self.values.tobytes()))

    @property
    def ends(self) -> np.ndarray:
        """The beta between which the density is positive, at any k."""
        if self.values.ndim == 1:
            return np.empty(0)
        zero = np.pad(self.values == 0, ((0, 0), (1, 1)))
        is_end = zero[:, 1:-1] & ~(zero[:, :-2] & zero[:, 2:])
        return np.linspace(0.0, self.beta_max, self.values.shape[1])[is_end.any(axis=0)]


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
        masses = find_mass(self._log_values, self.k_max, self.beta_max).values()
        if not masses:
            raise ValueError(
                f"prior is zero everywhere, as far as {N_NODES * _N_FINE_PANELS} values of beta "
                f"in [0, {self.beta_max:g}] tell"
            )
        log_mass = logsumexp([mass.log_mass for mass in masses])
        object.__setattr__(self, "log_mass", float(log_mass))

    def log_density(self, beta: Any, k: Any) -> np.ndarray:
        """Return the log density at (beta, k), broadcast; minus infinity outside the range."""
        inside = np.atleast_1d(_is_inside(self, beta, k))
        beta, k = np.broadcast_arrays(np.asarray(beta, dtype=np.float64), np.asarray(k))
        values = np.full(inside.shape, -np.inf)
        if inside.any():
            k_inside = np.atleast_1d(k)[inside].astype(np.int64)
            values[inside] = self._log_values(np.atleast_1d(beta)[inside], k_inside)
        return (values - self.log_mass).reshape(beta.shape)

    def _log_values(self, beta: np.ndarray, k: Any) -> np.ndarray:
        beta, k = np.broadcast_arrays(beta, k)
        values = self._call(beta, k)
        _check_density(
            values, lambda where: f"k={k[where]}, beta={beta[where]:.4g}", may_vanish=True
        )
        return _log(values)

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
    k_max = check_count(k_max, "k_max")
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


class Mass(NamedTuple):
    """Where the prior of beta at one k has its mass.

    Attributes
    ----------
    low, high : float
        The ends of its support.
    breaks : ndarray
        Ends of panels around what is narrow or jumps; empty where the prior is smooth.
    log_mass, log_top : float
        Log of its integral, and of its largest value.
    is_flat : bool
        The same for all beta up to beta_max.
    shape_id : int
        The same number at two k where the prior differs by a factor only.
    """

    low: float
    high: float
    breaks: np.ndarray
    log_mass: float
    log_top: float
    is_flat: bool
    shape_id: int = 0

    def panels(self, n_panels: int) -> np.ndarray:
        """Return the ends of panels on which to begin an integral with this prior.

        However wide the prior is, likelihoods change where beta is of the order of one: powers of
        ten are among the ends, so that the first panel does not step over that.
        """
        powers = 10.0 ** np.arange(1, 309)
        powers = powers[(powers > self.low) & (powers < self.high)]
        even = np.linspace(self.low, self.high, n_panels + 1)
        return np.unique(np.concatenate([even, powers, self.breaks]))


def find_mass(
    log_density: Callable[..., Any], k_max: int, beta_max: float, ends: Any = ()
) -> dict[int, Mass]:
    """Find where a prior has its mass, from its values.

    Parameters
    ----------
    log_density : callable
        ``log_density(beta, k)``, broadcast. It need not be normalised.
    k_max : int
    beta_max : float
    ends : array-like
        Where it is known to begin and to end; the rest is found.

    Returns
    -------
    dict of int to Mass
        By k, for those k at which the prior is positive anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.model.prior import find_mass
    >>> def log_density(beta, k):
    ...     return np.where((beta >= 1.03) & (beta <= 1.045) & (k == 2), 0.0, -np.inf)
    >>> masses = find_mass(log_density, k_max=3, beta_max=4.0)
    >>> list(masses), round(masses[2].low, 9), round(masses[2].high, 9)
    ([2], 1.03, 1.045)
    """
    ks = np.arange(1, k_max + 1)
    edges, fine = (
        np.union1d(np.linspace(0.0, beta_max, n + 1), ends) for n in (_N_PANELS, _N_FINE_PANELS)
    )
    nodes = place_nodes(edges)[0]
    # A user's prior may return one number for all beta.
    looks = np.broadcast_to(log_density(nodes, ks[:, None]), (k_max, len(nodes)))
    masses: dict[int, Mass] = {}
    alike: dict[bytes, tuple[Mass, float]] = {}
    for k, look in zip(ks.tolist(), looks, strict=True):
        where = edges
        if not np.isfinite(look).any():
            where = fine
            nodes = place_nodes(fine)[0]
            look = np.broadcast_to(log_density(nodes, k), nodes.shape)
        if not np.isfinite(look).any():
            continue
        # Most priors differ from k to k by a factor only.
        top = look[np.isfinite(look)].max()
        key = np.round(look - top, 9).tobytes()
        if key not in alike:
            mass = _find_mass_at(lambda beta, k=k: log_density(beta, k), where, look)
            alike[key] = mass._replace(shape_id=len(alike)), top
        mass, first_top = alike[key]
        more = top - first_top
        masses[k] = mass._replace(log_mass=mass.log_mass + more, log_top=mass.log_top + more)
    return masses


def find_prior_mass(prior: Prior) -> dict[int, Mass]:
    """Return :func:`find_mass` of a prior; it is an error if there is none."""
    masses = _find_mass_of(prior)
    if not masses:
        raise ValueError(
            "the prior is zero or not a number wherever it was looked at in "
            f"k=1..{prior.k_max}, beta in [0, {prior.beta_max:g}]; check it"
        )
    return masses


def draw_from_prior(
    prior: Prior, n_draws: int, rng: np.random.Generator
) -> list[tuple[float, int]]:
    """Draw (beta, k) from a prior; nothing if it has no mass.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.model import UniformPrior
    >>> from bayesknn.model.prior import draw_from_prior
    >>> (beta, k), = draw_from_prior(UniformPrior(3, 4.0), 1, np.random.default_rng(0))
    >>> 0 < beta < 4 and 1 <= k <= 3
    True
    """
    masses = _find_mass_of(prior)
    if not masses:
        return []
    probabilities = softmax([mass.log_mass for mass in masses.values()])
    draws = []
    for k, n in zip(masses, rng.multinomial(n_draws, probabilities), strict=True):
        at_k = partial(prior.log_density, k=k)
        panels = find_panels(at_k, masses[k].panels(N_PANELS))
        cells, log_masses = place_cells(panels), integrate(at_k, panels)[1]
        at = rng.choice(len(log_masses), size=n, p=softmax(log_masses))
        draws += [(beta, k) for beta in rng.uniform(cells[at], cells[at + 1]).tolist()]
    rng.shuffle(draws)
    return draws


def _find_mass_of(prior: Prior) -> dict[int, Mass]:
    if isinstance(prior, UniformPrior):
        height = float(prior.log_density(0.0, 1))
        log_mass = height + float(np.log(prior.beta_max))
        mass = Mass(0.0, prior.beta_max, np.empty(0), log_mass, height, is_flat=True)
        return dict.fromkeys(range(1, prior.k_max + 1), mass)
    ends = getattr(prior, "ends", ())
    return find_mass(prior.log_density, prior.k_max, prior.beta_max, ends)


def _find_mass_at(log_density: Callable[..., Any], edges: np.ndarray, look: np.ndarray) -> Mass:
    if np.all(look == look[0]):
        height = float(look[0])
        log_mass = height + float(np.log(edges[-1]))
        return Mass(0.0, float(edges[-1]), np.empty(0), log_mass, height, is_flat=True)
    nodes, inside = place_nodes(edges)[0], np.isfinite(look)
    at = np.flatnonzero(inside[1:] != inside[:-1])
    inner, outer = at + inside[at + 1], at + inside[at]
    jumps = _bisect(log_density, nodes[inner], nodes[outer])
    low = 0.0 if inside[0] else float(jumps[0])
    high = float(edges[-1] if inside[-1] else jumps[-1])
    even = np.linspace(0.0, edges[-1], _N_PANELS + 1)
    between = edges[(edges > low) & (edges < high)]
    panels = find_panels(log_density, np.unique([low, *jumps, *between, high]))
    breaks = np.union1d(jumps, np.setdiff1d(panels, even))
    at_nodes, log_masses = integrate(log_density, panels)
    log_top = float(np.nanmax(log_density(at_nodes)))
    return Mass(low, high, breaks, float(logsumexp(log_masses)), log_top, is_flat=False)


def _bisect(log_density: Callable[..., Any], inner: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Move points of the support out to its edges, each of which lies between two points."""
    # So many halvings go down to rounding.
    for _ in range(50 if len(inner) else 0):
        middle = (inner + outer) / 2
        is_inside = np.isfinite(log_density(middle))
        inner, outer = np.where(is_inside, middle, inner), np.where(is_inside, outer, middle)
    return inner


def default_max_neighbors(class_sizes: Any) -> int:
    """Return K, the default largest k, from the numbers of rows of the classes.

    K is the largest of three numbers: the size of the smallest class, as in the paper; half the
    mean size of a row's class, ``sum(n_g^2) / 2n``, so that one rare class does not limit all rows;
    and ``min(2 sqrt(n), (n - 80) / 8)``, so that many small classes do not. K is at most n - 1, 500
    and 2e7 / n.

    Examples
    --------
    >>> from bayesknn.model import default_max_neighbors
    >>> default_max_neighbors([125, 125]), default_max_neighbors([132, 68])
    (125, 68)
    >>> default_max_neighbors([125, 125, 5])
    61
    >>> default_max_neighbors(20 * [20])
    40
    """
    sizes = check_sizes(class_sizes)
    n = int(sizes.sum())
    # More neighbours lower the log-loss where classes are small and overlap. In tables of about 100
    # rows they raise it, so that this bound grows from 80 rows on and is reached at 400. Measured
    # by docs/measure/max_neighbors.py.
    of_many_classes = int(min(2.0 * np.sqrt(n), (n - 80) / 8))
    wanted = max(int(sizes.min()), int(sizes @ sizes) // (2 * n), of_many_classes)
    # In a list of 500 the proportion of a class is known to two per cent or better, and 2e7
    # neighbours in all are as many as are found unless more are asked for.
    return max(1, min(wanted, n - 1, 500, 20_000_000 // n))


def _check_range(prior: Any) -> None:
    """Normalise the fields that every prior has."""
    object.__setattr__(prior, "k_max", check_count(prior.k_max, "k_max"))
    object.__setattr__(prior, "beta_max", check_positive(prior.beta_max, "beta_max"))


def _is_inside(prior: Any, beta: Any, k: Any) -> np.ndarray:
    beta, k = as_floats(beta, "beta"), as_floats(k, "k")
    whole = (k >= 1) & (k <= prior.k_max) & (k == np.floor(k))
    return (beta >= 0) & (beta <= prior.beta_max) & whole


def _check_density(values: np.ndarray, name: Callable[..., str], may_vanish: bool = False) -> None:
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        where = np.unravel_index(int(np.argmax(bad)), values.shape)
        raise ValueError(
            f"prior must be finite and not negative, got {values[where]} at {name(where)}"
        )
    if not may_vanish and not values.any():
        raise ValueError("prior is zero everywhere")


def _name_cell(where: tuple[Any, ...], values: np.ndarray, beta_max: float) -> str:
    if len(where) == 1:
        return f"k={where[0] + 1}"
    return f"k={where[0] + 1}, beta={beta_max * where[1] / (values.shape[1] - 1):.4g}"


def _log(density: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(density)
