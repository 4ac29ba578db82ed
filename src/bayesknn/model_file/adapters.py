"""What the report and the command ask of a classifier, where the two that we have differ."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from bayesknn._estimator import params_of_fit
from bayesknn._utils.words import join, percent, shorten
from bayesknn.likelihood import LIKELIHOODS
from bayesknn.sureness.groups import find_scored


class Adapter:
    """Interface of a classifier to a table model; the two subclasses add what the report asks.

    The classifier need not be fitted.

    Attributes
    ----------
    title : str
        Name of the model in the first line of ``bayesknn fit``.
    is_slow : bool
        Whether a prediction takes about ten times as long as one of the paper's model.
    takes_missing : bool
        Whether it takes missing values.
    takes_categories : bool
        Whether it compares numbers and categories as they are.
    """

    title = "classifier"
    is_slow = False
    takes_missing = False
    takes_categories = False

    def __init__(self, classifier: Any):
        self.classifier = classifier
        self.params = params_of_fit(classifier)
        self.is_gower = self.params.get("metric") == "gower"
        self.takes_categories |= self.is_gower

    def encoding(self, impute: bool = True) -> dict[str, bool]:
        """Return the parameters of the ``ColumnEncoder`` that the classifier needs."""
        return {
            "indicators": not self.takes_categories,
            "impute": impute and not self.takes_missing,
        }

    @property
    def _odds_ratios(self) -> np.ndarray | None:
        """The factors a_g of ``class_prior``."""
        return self.classifier.class_weight_

    @property
    def score_weights(self) -> np.ndarray:
        """Weight of each training row in scores, before ``class_prior``; 0 for one in no score."""
        labels, groups = self.classifier._labels, self.classifier.groups_
        if (weights := getattr(self.classifier, "_score_weights", None)) is None:
            return np.ones(len(labels)) if groups is None else find_scored(labels, groups)
        return weights

    @property
    def class_prior(self) -> np.ndarray | None:
        """Class frequencies that the classifier was fitted for; None for those of training."""
        ratios = self._odds_ratios
        if ratios is None:
            return None
        sums = ratios * np.bincount(
            self.classifier._labels, getattr(self.classifier, "_weights", None)
        )
        return sums / sums.sum()

    def describe_weights(self, of_training: bool = True) -> str:
        """Return a sentence on the weights of rows in scores, empty if all weights are 1."""
        parts, weights = [], self.score_weights
        if of_training and np.ptp(weights[weights > 0]) > 1e-9:
            parts.append("training rows have the sample_weight of the fit")
        if (prior := self.class_prior) is not None:
            names = map(str, self.classifier.classes_.tolist())
            each = zip(names, prior, strict=True)
            given = [f"{shorten(n)} {percent(p, 1)}".replace("\xa0", " ") for n, p in each]
            parts.append(
                f"each class has the proportion that was given as class_prior ({join(given)})"
            )
        return f"every score here is weighted: {' and '.join(parts)}" if parts else ""


class PosteriorAdapter(Adapter):
    """The paper's model: a posterior of beta and k."""

    def __init__(self, classifier: Any):
        super().__init__(classifier)
        self.model = self.params["likelihood"]
        self.likelihood = LIKELIHOODS[self.model]
        self.title = f"Bayesian k-nearest neighbours, {self.model} likelihood"

    @property
    def k_mean(self) -> float:
        """Posterior mean of k."""
        k, weights = self.classifier.k_values_, self.classifier.k_probabilities_
        return float(np.average(k, weights=weights))

    @property
    def k_interval(self) -> tuple[int, int]:
        """Central 95 % interval of k."""
        k, weights = self.classifier.k_values_, self.classifier.k_probabilities_
        low, high = np.quantile(k, [0.025, 0.975], weights=weights, method="inverted_cdf")
        return int(low), int(high)

    def summarise(self) -> dict[str, Any]:
        """Give likelihood, inference, k and beta."""
        clf = self.classifier
        interval, k_max = list(self.k_interval), int(clf.k_values_[-1])
        return {
            "likelihood": self.model,
            "inference": clf.diagnostics_["inference"],
            "k": {"mean": self.k_mean, "interval": interval, "max": k_max},
            "beta": {"mean": clf.beta_mean_, "sd": clf.beta_sd_, "max": clf.beta_max_},
        }

    def format_line(self) -> str:
        """Give k and beta in a line."""
        clf = self.classifier
        low, high = self.k_interval
        return (
            f"k = {self.k_mean:.1f} (95 % credible interval {low} to {high}), beta = "
            f"{clf.beta_mean_:.2f} ± {clf.beta_sd_:.2f}"
        )

    def criticise(self, X: Any, y: np.ndarray) -> dict[str, Any] | None:
        """Check the model and its prior, where the posterior is known on a grid.

        By 100 labellings drawn from the model, and 5 refits to drawn labels: less time than the
        fit takes.
        """
        from bayesknn import criticism

        clf = self.classifier
        if clf.grid_ is None:
            return None
        checks: dict[str, Any] = {}
        if self.likelihood.coherent:
            checks = criticism.predictive_statistics(clf, 100, random_state=0)
        coverage = None
        with suppress(ValueError):  # class_prior, or a class that is hardly ever drawn
            coverage = criticism.check_intervals(clf, X, y, n_repeats=5, random_state=0, verbose=0)
        return {
            "checks": checks,
            "evidence": criticism.compare_evidence({"Bayesian kNN": clf}).to_dict("index"),
            "priors": criticism.sensitivity(clf).to_dict("index"),
            "coverage": coverage,
        }


class PoolAdapter(Adapter):
    """The pool: neighbours in several metrics, logistic regressions and boosted trees."""

    title = "the pool of nearest neighbours, logistic regressions and boosted trees"
    model = "pooled"
    is_slow = True
    takes_categories = True
    takes_missing = True

    @property
    def _odds_ratios(self) -> np.ndarray | None:
        return self.classifier._odds_ratio

    @property
    def relevance(self) -> dict[str, float]:
        """Relevance of each column, in the order in which the pool was given them."""
        relevance = getattr(self.classifier, "feature_relevance_", ())
        default = [f"x{j}" for j in range(len(relevance))]
        names = getattr(self.classifier, "feature_names_in_", default)
        return {str(name): float(each) for name, each in zip(names, relevance, strict=False)}

    def summarise(self) -> dict[str, Any]:
        """Give the weights of the members and the relevance of the columns."""
        return {"pool_weights": self.classifier.pool_weights_, "relevance": self.relevance}

    def format_line(self) -> str:
        """Give the weights of the members in a line."""
        weights = sorted(self.classifier.pool_weights_.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights if weight > 0)
        return f"Exponents of the pool's members (they need not add up to 1): {listed}"

    def criticise(self, X: Any, y: np.ndarray) -> None:
        """Give nothing: there is no model of the labels to check."""


def adapt(classifier: Any) -> Any:
    """Return the adapter of a classifier."""
    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    if isinstance(classifier, PooledNeighborsClassifier):
        return PoolAdapter(classifier)
    if isinstance(classifier, BayesianKNeighborsClassifier):
        return PosteriorAdapter(classifier)
    return Adapter(classifier)
