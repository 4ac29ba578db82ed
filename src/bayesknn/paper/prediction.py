"""Class probabilities averaged over a posterior, and what they get wrong (eq. MCpred)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bayesknn.model import BoltzmannModel
from bayesknn.paper.item import Estimate
from bayesknn.paper.samples import Draws
from bayesknn.paper.setting import Study
from bayesknn.posterior import GridPosterior
from bayesknn.predictive import PosteriorNodes, Predictive

_N_REPLICATES = 16


def predictive(
    study: Study, posterior: Draws | GridPosterior, direction: str = "both"
) -> Predictive:
    """Return the rule that averages over a posterior.

    Parameters
    ----------
    study : Study
    posterior : Draws or GridPosterior
    direction : {"both", "forward"}
        Forward is the rule of Holmes and Adams.
    """
    if isinstance(posterior, GridPosterior):
        nodes = PosteriorNodes.from_grid(posterior)
    else:
        nodes = PosteriorNodes.from_draws(*posterior.kept)
    model = BoltzmannModel(study.graph, study.n_classes)
    return Predictive(model, study.labels, nodes, direction=direction)


def measure_error(study: Study, posterior: Draws | GridPosterior) -> Estimate:
    """Return the error rate on the test points.

    With chains, the spread is that of the rules of single chains; with a grid, the error is the
    spread of the rules of replicates of log Z.
    """
    return _measure(study, posterior, study.error_rate)


def measure_log_loss(study: Study, posterior: Draws | GridPosterior) -> Estimate:
    """Return the mean of minus the log probability of the test points' classes, likewise."""
    return _measure(study, posterior, study.log_loss)


def _measure(
    study: Study, posterior: Draws | GridPosterior, score: Callable[[np.ndarray], float]
) -> Estimate:
    def judge(law: Draws | GridPosterior) -> float:
        return score(predictive(study, law).probabilities(study.X_test))

    parts = [judge(part) for part in _parts(posterior)]
    spread = float(np.std(parts, ddof=1)) if len(parts) > 1 else 0.0
    if isinstance(posterior, GridPosterior):
        return Estimate(judge(posterior), spread)
    return Estimate(judge(posterior), spread / len(parts) ** 0.5, spread)


def _parts(posterior: Draws | GridPosterior) -> list[Any]:
    """Return the chains one by one, or a few replicates of the grid."""
    if isinstance(posterior, GridPosterior):
        none = posterior.replicates[:0]
        some = posterior.replicates[1 : _N_REPLICATES + 1]
        return [replace(posterior, weights=weights, replicates=none) for weights in some]
    pairs = zip(posterior.beta[:, None], posterior.k[:, None], strict=True)
    return [replace(posterior, beta=beta, k=k) for beta, k in pairs]
