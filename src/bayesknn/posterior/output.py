"""The posterior as people and ArviZ read it: an xarray DataTree (groups as in ArviZ's schema).

``posterior`` holds beta and k over (chain, draw), ``sample_stats`` what the sampler says about
each draw, ``observed_data`` the labels; the iterations of warm-up stand in groups of their own,
``warmup_posterior`` and ``warmup_sample_stats``. Attributes hold text and numbers only, tuning and
keys as JSON, so that netCDF gives back what it was given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._version import __version__

if TYPE_CHECKING:
    import xarray

_PARAMETERS = ("beta", "k")


def make_tree(
    draws: Mapping[str, np.ndarray],
    n_warmup: int = 0,
    *,
    labels: Any = None,
    attrs: Mapping[str, Any] | None = None,
) -> xarray.DataTree:
    """Lay draws out as a DataTree.

    Parameters
    ----------
    draws : mapping of str to ndarray of shape (n_chains, n_iterations)
        ``beta`` and ``k``, and anything else the sampler recorded.
    n_warmup : int, default=0
        How many of the iterations are warm-up.
    labels : array-like of shape (n,), optional
        The observed labels.
    attrs : mapping, optional
        Attributes of the tree: text and numbers as they are, anything else as JSON.

    Returns
    -------
    xarray.DataTree

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.posterior.output import make_tree
    >>> tree = make_tree({"beta": np.full((2, 5), 1.4), "k": np.full((2, 5), 14)}, n_warmup=1)
    >>> dict(tree["posterior"].sizes)
    {'chain': 2, 'draw': 4}
    """
    import xarray

    groups: dict[str, xarray.Dataset] = {}
    for prefix, part in (("", slice(n_warmup, None)), ("warmup_", slice(0, n_warmup))):
        if prefix and not n_warmup:
            continue
        groups[f"{prefix}posterior"] = _dataset(draws, _PARAMETERS, part)
        stats = [name for name in draws if name not in _PARAMETERS]
        if stats:
            groups[f"{prefix}sample_stats"] = _dataset(draws, stats, part)
    if labels is not None:
        labels = np.asarray(labels)
        coords = {"point": np.arange(len(labels))}
        groups["observed_data"] = xarray.Dataset({"labels": ("point", labels)}, coords)
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs = {
        "inference_library": "bayesknn",
        "inference_library_version": __version__,
        **{name: _as_attribute(value) for name, value in (attrs or {}).items()},
    }
    return tree


def save_posterior(tree: xarray.DataTree, path: str | os.PathLike) -> None:
    """Write a posterior to a netCDF file, which ArviZ and xarray read as well.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from bayesknn.posterior.output import load_posterior, make_tree, save_posterior
    >>> tree = make_tree({"beta": np.full((2, 5), 1.4), "k": np.full((2, 5), 14)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "posterior.nc")
    ...     save_posterior(tree, path)
    ...     load_posterior(path).identical(tree)
    True
    """
    tree.to_netcdf(path, engine="h5netcdf")


def load_posterior(path: str | os.PathLike) -> xarray.DataTree:
    """Read a posterior that :func:`save_posterior` wrote into memory; the file is closed again."""
    import xarray

    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        return tree.load()


def _dataset(draws: Mapping[str, np.ndarray], names: Any, part: slice) -> xarray.Dataset:
    import xarray

    variables = {name: (("chain", "draw"), np.asarray(draws[name])[:, part]) for name in names}
    n_chains, n_draws = variables[next(iter(variables))][1].shape
    coords = {"chain": np.arange(n_chains), "draw": np.arange(n_draws)}
    return xarray.Dataset(variables, coords)


def _as_attribute(value: Any) -> Any:
    if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return json.dumps(value)
