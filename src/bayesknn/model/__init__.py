"""The Boltzmann model of the labels: its statistic, conditionals, prior and exact constants.

``f(y | beta, k) = exp(beta / k * S_k(y)) / Z(beta, k)``, where ``S_k(y)`` counts the directed
edges ``i -> l``, l among the k nearest of i, whose ends share a label (Section 2.2).
"""

from bayesknn.model.conditionals import conditional_probabilities, count_fields
from bayesknn.model.elimination import expected_agreement_exact, log_normalizer_exact
from bayesknn.model.elimination_plan import EliminationPlan, plan_elimination
from bayesknn.model.enumeration import (
    enumerate_expected_agreement,
    enumerate_log_normalizer,
    exact_law,
    list_states,
    state_index,
)
from bayesknn.model.independence import agreement_variance_at_zero
from bayesknn.model.phase import PhaseCurve, choose_k_values, locate_beta_max
from bayesknn.model.prior import (
    ArrayPrior,
    FunctionPrior,
    Prior,
    UniformPrior,
    as_prior,
    default_max_neighbors,
)
from bayesknn.model.statistics import agreement, expected_agreement_at_zero
from bayesknn.model.weights import class_weights

__all__ = [
    "ArrayPrior",
    "EliminationPlan",
    "FunctionPrior",
    "PhaseCurve",
    "Prior",
    "UniformPrior",
    "agreement",
    "agreement_variance_at_zero",
    "as_prior",
    "choose_k_values",
    "class_weights",
    "conditional_probabilities",
    "count_fields",
    "default_max_neighbors",
    "enumerate_expected_agreement",
    "enumerate_log_normalizer",
    "exact_law",
    "expected_agreement_at_zero",
    "expected_agreement_exact",
    "list_states",
    "locate_beta_max",
    "log_normalizer_exact",
    "plan_elimination",
    "state_index",
]
