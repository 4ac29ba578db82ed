"""The law of (beta, k) given the labels.

Every chain is built from the same parts: ``proposals`` (the moves and their tuning), one file an
algorithm, ``chains`` (many chains, interrupted and resumed), ``checkpoint``, ``output`` (the
DataTree) and ``diagnostics``.
"""

from bayesknn.posterior.diagnostics import Diagnostics, diagnose
from bayesknn.posterior.grid import GridPosterior, grid_posterior
from bayesknn.posterior.metropolis import metropolis
from bayesknn.posterior.output import load_posterior, make_tree, save_posterior

__all__ = [
    "Diagnostics",
    "GridPosterior",
    "diagnose",
    "grid_posterior",
    "load_posterior",
    "make_tree",
    "metropolis",
    "save_posterior",
]
