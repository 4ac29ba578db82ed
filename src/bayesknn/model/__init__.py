"""The Boltzmann model of the labels: its statistic, conditionals, prior and exact constants.

``f(y | beta, k) = exp(beta / k * S_k(y)) / Z(beta, k)``, where ``S_k(y)`` counts the directed
edges ``i -> l``, l among the k nearest of i, whose ends share a label (Section 2.2).
:class:`BoltzmannModel` is what the labels are: graph, classes, class weights, fixed labels.
"""

from bayesknn.model.boltzmann import BoltzmannModel, as_model, class_probabilities
from bayesknn.model.elimination import (
    EliminationPlan,
    expected_agreement_exact,
    log_normalizer_exact,
    plan_elimination,
)
from bayesknn.model.frequencies import class_weights, log_evidence_of_frequencies
from bayesknn.model.prior import (
    ArrayPrior,
    FunctionPrior,
    Prior,
    UniformPrior,
    as_prior,
    default_max_neighbors,
)

__all__ = [
    "ArrayPrior",
    "BoltzmannModel",
    "EliminationPlan",
    "FunctionPrior",
    "Prior",
    "UniformPrior",
    "as_model",
    "as_prior",
    "class_probabilities",
    "class_weights",
    "default_max_neighbors",
    "expected_agreement_exact",
    "log_evidence_of_frequencies",
    "log_normalizer_exact",
    "plan_elimination",
]
