"""Every figure, table and number of the paper by its id, and what was added.

An id is the LaTeX label; see :class:`~bayesknn.paper.item.Item`. Experiments of one family share
a file; the order here is the order of the paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from bayesknn.paper import (
    approximations,
    breakdown,
    chain_figures,
    classical_tables,
    extras,
    glass,
    path_sampling,
    perfect_sampling,
    pima,
    zones,
)
from bayesknn.paper.item import Item

_ORDER = (
    "fig:ripley", "tab:knn-ripley", "fig:leave1", "fig:levelset",
    "num:holmes-adams", "num:pseudo-maximum", "num:beta-max", "fig:pseudoo", "num:error-pseudo",
    "fig:constappro1", "fig:constappro2", "fig:psycho", "num:error-path",
    "fig:imperfecto", "fig:perfecto", "num:error-perfect", "num:error-gibbs", "num:times",
    "fig:pseudoA", "fig:pseudoB", "fig:proba-compa",
    "num:pima-sizes", "tab:knn-indian", "num:loo-pima", "fig:perfindian", "num:error-pima",
    "num:glass-sizes", "num:glass",
    "ref:log-z", "ref:posterior", "extra:exact-posterior", "extra:perfect-four", "extra:breakdown",
)  # fmt: skip
_FAMILIES = (
    classical_tables, chain_figures, path_sampling, perfect_sampling, approximations, zones, pima,
    glass, extras, breakdown,
)  # fmt: skip
_ALL = {item.id: item for family in _FAMILIES for item in family.ITEMS}
REGISTRY: dict[str, Item] = {id: _ALL[id] for id in _ORDER}


def find_items(ids: Iterable[str] | None = None) -> list[Item]:
    """Return items by id, in the order of the paper; all of them if no id is given.

    Parameters
    ----------
    ids : iterable of str, optional
        The paper's own labels, some without a prefix, are understood too: ``pseudoo``.

    Returns
    -------
    list of Item

    Examples
    --------
    >>> from bayesknn.paper.registry import find_items
    >>> [item.title for item in find_items(["fig:levelset", "pseudoo"])]
    ['Level sets and zones', 'Chain on the pseudo-likelihood']
    """
    wanted = set()
    for id in [] if ids is None else ids:
        known = id if id in REGISTRY else f"fig:{id}"
        if known not in REGISTRY:
            close = get_close_matches(id, REGISTRY, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the ids are {', '.join(REGISTRY)}"
            raise ValueError(f"there is no {id!r} in the paper; {hint}")
        wanted.add(known)
    return [item for item in REGISTRY.values() if not wanted or item.id in wanted]
