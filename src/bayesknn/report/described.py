"""What the report and the command line ask of a classifier, answered alike for either of them.

Nothing else in this folder asks which classifier it has before it: a further one needs a class
here, and a section of its own if it has something of its own to show.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Described:
    """A classifier, fitted where not said otherwise.

    Parameters
    ----------
    classifier : estimator
        Any that :func:`describe` does not know has what stands here.

    Attributes
    ----------
    name : str
        What tables of scores call it.
    filled : str
        What takes the place of a missing number by itself, empty if a missing value is an error.
    unseen : str
        What becomes of a category that training did not see.
    """

    name = "classifier"
    filled = ""
    unseen = "they count as rare ones"

    def __init__(self, classifier: Any):
        self.classifier = classifier

    @property
    def takes_categories(self) -> bool:
        """Whether it compares numbers and categories as they are; it need not be fitted."""
        return getattr(self.classifier, "metric", None) == "gower"

    @property
    def model(self) -> str:
        """What ``--model`` calls it."""
        return ""

    def summarise(self, columns: list[str]) -> dict[str, Any]:
        """Sum it up for a machine to read."""
        return {}

    def tell(self) -> str:
        """Sum it up in one line for a person to read."""
        return ""


class DescribedPosterior(Described):
    """The paper's model: a posterior of beta and k."""

    name = "Bayesian kNN"

    @property
    def model(self) -> str:
        """The likelihood."""
        return self.classifier.likelihood

    @property
    def k_mean(self) -> float:
        """Posterior mean of k."""
        clf = self.classifier
        return float(clf.k_values_ @ clf.k_probabilities_ / clf.k_probabilities_.sum())

    @property
    def k_interval(self) -> tuple[int, int]:
        """Central 95 % interval of k."""
        clf = self.classifier
        total = np.cumsum(clf.k_probabilities_) / clf.k_probabilities_.sum()
        low, high = np.searchsorted(total, [0.025, 0.975])
        return int(clf.k_values_[low]), int(clf.k_values_[min(high, len(total) - 1)])

    def summarise(self, columns: list[str]) -> dict[str, Any]:
        """Give likelihood, inference, k and beta."""
        clf = self.classifier
        return {
            "likelihood": clf.likelihood,
            "inference": clf.diagnostics_["inference"],
            "k": {
                "mean": self.k_mean,
                "interval": list(self.k_interval),
                "max": int(clf.k_values_[-1]),
            },
            "beta": {"mean": clf.beta_mean_, "sd": clf.beta_sd_, "max": clf.beta_max_},
        }

    def tell(self) -> str:
        """Give k, beta and the likelihood."""
        clf = self.classifier
        low, high = self.k_interval
        return (
            f"k = {self.k_mean:.1f} (95 % credible interval {low} to {high}), beta = "
            f"{clf.beta_mean_:.2f} ± {clf.beta_sd_:.2f}; {clf.likelihood} likelihood"
        )


class DescribedPool(Described):
    """The pool of neighbours in several metrics."""

    name = "pooled neighbours"
    filled = "mean"
    unseen = "they count as none of the known ones"

    @property
    def takes_categories(self) -> bool:
        """It does."""
        return True

    @property
    def model(self) -> str:
        """The pool."""
        return "pooled"

    def summarise(self, columns: list[str]) -> dict[str, Any]:
        """Give the weights of the members and the relevance of the columns."""
        clf = self.classifier
        about: dict[str, Any] = {"pool_weights": clf.pool_weights_}
        if hasattr(clf, "feature_relevance_"):
            about["relevance"] = dict(zip(columns, map(float, clf.feature_relevance_), strict=True))
        return about

    def tell(self) -> str:
        """Give the weights of the members."""
        weights = sorted(self.classifier.pool_weights_.items(), key=lambda item: -item[1])
        told = ", ".join(f"{name} {weight:.2f}" for name, weight in weights if weight > 0)
        return f"Pooled neighbours; exponents of the members (they need not add up to 1): {told}"


def describe(classifier: Any) -> Described:
    """Return what is to be known of a classifier."""
    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    if isinstance(classifier, PooledNeighborsClassifier):
        return DescribedPool(classifier)
    if isinstance(classifier, BayesianKNeighborsClassifier):
        return DescribedPosterior(classifier)
    return Described(classifier)
