"""The posterior as people and ArviZ read it: an xarray DataTree (groups as in ArviZ's schema).

``posterior`` holds beta and k over (chain, draw), ``sample_stats`` what the sampler says about
each draw, ``observed_data`` the labels and ``posterior_predictive`` labels drawn from the model, if
they were asked for; the iterations of warm-up stand in groups of their own, ``warmup_posterior``
and ``warmup_sample_stats``. Attributes hold text and numbers only, tuning and
keys as JSON, so that netCDF gives back what it was given.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._utils.checks import check_count
from bayesknn._utils.extras import require
from bayesknn._utils.saving import reading
from bayesknn._version import __version__

if TYPE_CHECKING:
    import xarray


def require_xarray() -> Any:
    """Return xarray, or say which extra brings it."""
    return require("xarray", "draws in ArviZ's layout need", "posterior")


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
    >>> from bayesknn.posterior.trees import make_tree
    >>> tree = make_tree({"beta": np.full((2, 5), 1.4), "k": np.full((2, 5), 14)}, n_warmup=1)
    >>> dict(tree["posterior"].sizes)
    {'chain': 2, 'draw': 4}
    """
    return restore_tree(lay_out_draws(draws, n_warmup, labels=labels, attrs=attrs))


def lay_out_draws(
    draws: Mapping[str, np.ndarray],
    n_warmup: int = 0,
    *,
    labels: Any = None,
    attrs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a posterior as plain dictionaries of arrays, which any file format can hold.

    The arguments are those of :func:`make_tree`; :func:`restore_tree` makes a tree of the result.
    """
    if missing := {"beta", "k"} - set(draws):
        raise ValueError(f"draws must hold beta and k, and have no {min(missing)}")
    n_warmup = check_count(n_warmup, "n_warmup", 0, np.shape(draws["k"])[-1])
    groups: dict[str, dict[str, np.ndarray]] = {}
    for prefix, part in (("", slice(n_warmup, None)), ("warmup_", slice(0, n_warmup))):
        if prefix and not n_warmup:
            continue
        cut = {name: np.asarray(values)[:, part] for name, values in draws.items()}
        stats = {name: values for name, values in cut.items() if name not in ("beta", "k")}
        groups[f"{prefix}posterior"] = {name: cut[name] for name in ("beta", "k")}
        if stats:
            groups[f"{prefix}sample_stats"] = stats
    if labels is not None:
        groups["observed_data"] = {"labels": np.asarray(labels)}
    about = {
        "inference_library": "bayesknn",
        "inference_library_version": __version__,
        **{name: _as_attribute(value) for name, value in (attrs or {}).items()},
    }
    return {"groups": groups, "attrs": about}


def save_posterior(tree: xarray.DataTree, path: str | os.PathLike[str]) -> None:
    """Write a posterior to a netCDF file, which ArviZ and xarray read as well.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from bayesknn.posterior.trees import load_posterior, make_tree, save_posterior
    >>> tree = make_tree({"beta": np.full((2, 5), 1.4), "k": np.full((2, 5), 14)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "posterior.nc")
    ...     save_posterior(tree, path)
    ...     load_posterior(path).identical(tree)
    True
    """
    # In memory first, since HDF5 does not survive a disk that is full; as bytes, since a view of
    # them in the traceback of a failure crashes Python 3.12.1 when it is collected.
    require("h5netcdf", "netCDF files need", "posterior")
    with _without_cluster():
        content = bytes(tree.to_netcdf(engine="h5netcdf"))
    with open(path, "wb") as file:
        file.write(content)


def load_posterior(path: str | os.PathLike[str]) -> xarray.DataTree:
    """Read a posterior that :func:`save_posterior` wrote into memory; the file is closed again."""
    xarray = require_xarray()
    require("h5netcdf", "netCDF files need", "posterior")
    with _without_cluster(), xarray.open_datatree(path, engine="h5netcdf") as tree:
        ours = tree.attrs.get("inference_library") == "bayesknn"
        version = tree.attrs.get("inference_library_version") if ours else None
        with reading(f"the posterior {path}", version):
            return tree.load()


def _without_cluster() -> AbstractContextManager[Any]:
    """Keep xarray from asking a Dask cluster, if there is one, for a lock on bytes in memory."""
    dask = sys.modules.get("dask")
    return nullcontext() if dask is None else dask.config.set(scheduler="synchronous")


def restore_tree(flat: Mapping[str, Any]) -> xarray.DataTree:
    """Return the tree of a posterior that :func:`lay_out_draws` laid out."""
    groups = {
        name: _as_dataset(variables, *_dims(name)) for name, variables in flat["groups"].items()
    }
    tree = require_xarray().DataTree.from_dict(groups)
    tree.attrs = dict(flat["attrs"])
    return tree


def add_predictive(tree: xarray.DataTree, labels: np.ndarray, attrs: Mapping[str, Any]) -> None:
    """Put drawn labels, of shape (n_draws, n), into a tree: the group ``posterior_predictive``."""
    group = _as_dataset({"labels": labels[None]}, *_dims("posterior_predictive"))
    group.attrs = dict(attrs)
    tree["posterior_predictive"] = require_xarray().DataTree(group)


def _dims(group: str) -> tuple[str, ...]:
    return ("point",) if group == "observed_data" else ("chain", "draw", "point")


def _as_dataset(variables: Mapping[str, np.ndarray], *dims: str) -> xarray.Dataset:
    shape = next(iter(variables.values())).shape
    coords = {dim: np.arange(size) for dim, size in zip(dims, shape, strict=False)}
    return require_xarray().Dataset(
        {name: (dims[: values.ndim], values) for name, values in variables.items()}, coords
    )


def _as_attribute(value: Any) -> Any:
    if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return json.dumps(value)
