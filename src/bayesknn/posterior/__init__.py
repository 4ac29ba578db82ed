"""The law of (beta, k) given the labels.

``grid_posterior`` sums over a grid, with no Markov chain. The chains are ``metropolis`` for a
likelihood that can be computed, and for the coherent model, whose constant Z is not known,
``exchange`` and ``auxiliary``, which draw labels in every move. They are built from the same
parts: ``proposals`` (the moves and their tuning), one file an algorithm, ``label_chains`` and
``drawer`` (what the latter two share), ``chains`` (many chains, interrupted and resumed),
``checkpoint``, ``output`` (the DataTree) and ``diagnostics``.

Three functions have the names of their modules and hide them: ``bayesknn.posterior.exchange`` is
the function, and ``from bayesknn.posterior.exchange import ...`` still finds the module.
"""

from bayesknn.posterior.auxiliary import auxiliary
from bayesknn.posterior.diagnostics import Diagnostics, diagnose
from bayesknn.posterior.exchange import exchange
from bayesknn.posterior.grid import GridPosterior, grid_posterior
from bayesknn.posterior.metropolis import metropolis
from bayesknn.posterior.output import load_posterior, make_tree, save_posterior

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
