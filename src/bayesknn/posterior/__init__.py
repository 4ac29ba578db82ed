"""The posterior distribution of (beta, k) given the labels.

``grid_posterior`` sums over a grid, with no Markov chain. The chains are ``metropolis`` for a
likelihood that can be computed, and for the coherent model, whose constant Z is not known,
``exchange`` and ``auxiliary``, which draw labels in every move. They are built from the same
parts: ``proposals`` (the moves and their tuning), one file an algorithm, ``label_chains`` (what the
latter two share), ``chains`` (many chains, interrupted or not), ``trees``
(the DataTree) and ``diagnostics``.
"""

from bayesknn.posterior.auxiliary_variables import auxiliary
from bayesknn.posterior.diagnostics import Diagnostics, diagnose
from bayesknn.posterior.exchange_algorithm import exchange
from bayesknn.posterior.grid import GridPosterior, grid_posterior
from bayesknn.posterior.metropolis_hastings import metropolis
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
