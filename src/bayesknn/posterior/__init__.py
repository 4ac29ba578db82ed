"""The posterior distribution of (beta, k) given the labels.

Two engines, each a folder: ``quadrature`` sums over a grid, ``mcmc`` runs chains, the paper's
and the exchange algorithm. ``routes`` chooses between them, ``trees`` lays draws out as ArviZ reads
them.
"""

from bayesknn.posterior.mcmc.auxiliary import auxiliary
from bayesknn.posterior.mcmc.diagnostics import Diagnostics, diagnose
from bayesknn.posterior.mcmc.exchange import exchange
from bayesknn.posterior.mcmc.metropolis import metropolis
from bayesknn.posterior.quadrature.grid import GridPosterior, grid_posterior
from bayesknn.posterior.trees import load_posterior, make_tree, save_posterior

__all__ = [
    "Diagnostics",
    "GridPosterior",
    "auxiliary",
    "diagnose",
    "exchange",
    "grid_posterior",
    "load_posterior",
    "make_tree",
    "metropolis",
    "save_posterior",
]
