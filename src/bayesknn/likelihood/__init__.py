"""log f(y | beta, k): that of the coherent model, and what stands in for it (Section 3).

``PseudoLikelihood`` and ``HolmesAdamsLikelihood`` are products of conditionals, cheap at any n;
``ExactLikelihood`` is the coherent model on graphs narrow enough for exact elimination, and
``CoherentLikelihood`` the same with a table of log Z (``path_table``), or without one for the
routes that need none. Each of them offers what ``Likelihood`` says.
"""

from bayesknn.likelihood.base import Likelihood
from bayesknn.likelihood.coherent import CoherentLikelihood, ExactLikelihood, log_normalizer
from bayesknn.likelihood.conditionals import (
    HolmesAdamsLikelihood,
    PseudoLikelihood,
    log_pseudo_likelihood,
)
from bayesknn.log_z import PathTable, path_table

# Those that users choose by their names: the classifier and the report read what a class says of
# itself.
LIKELIHOODS: dict[str, type[Likelihood]] = {
    each.name: each for each in (CoherentLikelihood, PseudoLikelihood, HolmesAdamsLikelihood)
}

__all__ = [
    "LIKELIHOODS",
    "CoherentLikelihood",
    "ExactLikelihood",
    "HolmesAdamsLikelihood",
    "Likelihood",
    "PathTable",
    "PseudoLikelihood",
    "log_normalizer",
    "log_pseudo_likelihood",
    "path_table",
]
