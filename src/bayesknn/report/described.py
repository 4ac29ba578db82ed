"""What the report and the command line ask of a classifier, answered alike for either of them.

Nothing else in this folder asks which classifier it has before it: a further one needs a class
here, and a section of the page if it has something of its own to show.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from bayesknn.likelihood import LIKELIHOODS
from bayesknn.report.columns import MAX_CATEGORIES
from bayesknn.report.words import percent, shorten, shorten_all

# Labels drawn from the model, and refits to drawn labels: less time than the fit takes.
_N_DRAWS, _N_REFITS = 100, 5


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
    kind : str
        What it is, to begin a sentence with.
    is_slow : bool
        Whether a prediction takes about ten times as long as one of the paper's model.
    filled : str
        What takes the place of a missing number by itself, empty if a missing value is an error.
    unseen : str
        What becomes of a category that training did not see.
    """

    name = kind = "classifier"
    is_slow = False
    filled = ""
    unseen = "they count as rare ones"

    def __init__(self, classifier: Any):
        self.classifier = classifier

    @property
    def is_gower(self) -> bool:
        """Whether it compares rows by Gower's distance; it need not be fitted."""
        return getattr(self.classifier, "metric", None) == "gower"

    @property
    def takes_categories(self) -> bool:
        """Whether it compares numbers and categories as they are; it need not be fitted."""
        return self.is_gower

    @property
    def name_compared(self) -> str:
        """What it is called among other classifiers; it need not be fitted."""
        return self.name

    def criticise(self, X: Any, y: np.ndarray) -> dict[str, Any] | None:
        """Give nothing: there is no model of the labels to check."""
        return None


class DescribedPosterior(Described):
    """The paper's model: a posterior of beta and k."""

    name = "Bayesian kNN"
    kind = "Bayesian k-nearest neighbours, averaged over k and its strength β,"

    @property
    def model(self) -> str:
        """The likelihood."""
        return self.classifier.likelihood

    @property
    def name_compared(self) -> str:
        """With the likelihood."""
        return f"{self.name} of the paper, {self.model} likelihood"

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

    def summarise(self) -> dict[str, Any]:
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

    def make_sections(self) -> dict[str, Any]:
        """Show the posterior of k and beta."""
        from bayesknn.report.figures import draw_posterior

        clf = self.classifier
        draws = np.asarray(clf.posterior_["posterior"]["beta"].values)
        interval = np.quantile(draws, [0.025, 0.975])
        return {"posterior": {"figures": draw_posterior(clf), "beta_interval": interval}}

    def criticise(self, X: Any, y: np.ndarray) -> dict[str, Any] | None:
        """Check the model and its prior, where the posterior is known on a grid."""
        from bayesknn import criticism

        clf = self.classifier
        if clf.grid_ is None:
            return None
        checks: dict[str, Any] = {}
        if LIKELIHOODS[clf.diagnostics_["likelihood"]].coherent:
            checks = criticism.predictive_statistics(clf, _N_DRAWS, random_state=0)
        coverage = None
        with suppress(ValueError):  # class_prior, or a class that is hardly ever drawn
            options = {"n_repeats": _N_REFITS, "random_state": 0, "verbose": 0}
            coverage = criticism.check_intervals(clf, X, y, **options)
        return {
            "checks": checks,
            "evidence": criticism.compare_evidence({self.name: clf}).to_dict("index"),
            "priors": criticism.sensitivity(clf).to_dict("index"),
            "coverage": coverage,
        }

    def tell_use(self, n_categories: int, standardised: bool) -> str:
        """Say how a column is compared: by Gower's distance, an indicator or its number."""
        if self.is_gower:
            return "equal or not (Gower)" if n_categories else "divided by its range (Gower)"
        if not n_categories:
            return "standardised" if standardised else "as it is"
        if n_categories <= MAX_CATEGORIES:
            return "an indicator for each category"
        return f"indicators of the {MAX_CATEGORIES - 1} most common categories, one for the others"

    def explain(self) -> list[str]:
        """Say in sentences how the result was computed."""
        clf, report = self.classifier, self.classifier.diagnostics_
        sentences = [
            LIKELIHOODS[clf.likelihood].description,
            f"The posterior of (β, k) was computed by {report['inference']}"
            + (", as asked for." if report["reason"] == "asked for" else f": {report['reason']}."),
            f"{self._tell_prior()} Distances are {clf.metric}.",
            *tell_searches({"": report["search"]}),
        ]
        if clf.class_prior is not None:
            prior, names = clf.class_prior, clf.classes_.tolist()
            if not isinstance(prior, Mapping):
                prior = dict(zip(names, prior, strict=True))
            given = ", ".join(f"{shorten(str(each))} {percent(prior[each], 1)}" for each in names)
            sentences.append(f"The classes' frequencies were given: {given}.")
        sentences += self._tell_chains() if "acceptance" in report else [self._tell_grid()]
        if hasattr(clf, "log_evidence_"):
            error = f" ± {clf.log_evidence_error_:.2f}" if clf.log_evidence_error_ else ""
            sentences.append(f"The log evidence is {clf.log_evidence_:.2f}{error}.")
        return sentences

    def _tell_prior(self) -> str:
        from bayesknn.model import UniformPrior

        clf = self.classifier
        is_uniform = clf.prior is None or isinstance(clf.prior, UniformPrior)
        kind = "uniform" if is_uniform else "not uniform: it was given,"
        return (
            f"The prior is {kind} over k from 1 to {clf.k_values_[-1]:,} and β from 0 to "
            f"{clf.beta_max_:.3g}."
        )

    def _tell_grid(self) -> str:
        report = self.classifier.diagnostics_
        error = report.get("log_normalizer_error", 0.0)
        if error == 0:
            return "Nothing was simulated, so there is no Monte Carlo error."
        return (
            f"The normalising constant was estimated by simulation: the Monte Carlo error of "
            f"log P(k) is at most {error:.2g} where k matters, that of the mean of β "
            f"{report['mcse']['beta']:.2g} and of k {report['mcse']['k']:.2g}."
        )

    def _tell_chains(self) -> list[str]:
        report = self.classifier.diagnostics_
        n_draws = int(np.prod(self.classifier.posterior_["posterior"]["beta"].shape))
        ess, rhat = report["ess"], report["rhat"]
        told = [
            f"{n_draws:,} draws are worth {ess['beta']:,.0f} independent ones for β and "
            f"{ess['k']:,.0f} for k; R-hat is {rhat['beta']:.3f} and {rhat['k']:.3f} (at most 1.01 "
            "is wanted)."
        ]
        if rates := [rate for rate in report["acceptance"] if np.isfinite(rate)]:
            told.append(
                f"{percent(min(rates))} to {percent(max(rates))} of the moves were accepted."
            )
        return told


class DescribedPool(Described):
    """The pool of neighbours in several metrics."""

    name = "pooled neighbours"
    kind = "An ensemble of nearest neighbours, a logistic regression and boosted trees"
    is_slow = True
    filled = "mean"
    unseen = "they count as none of the known ones"
    takes_categories = True
    model = "pooled"

    def summarise(self) -> dict[str, Any]:
        """Give the weights of the members and the relevance of the columns."""
        about: dict[str, Any] = {"pool_weights": self.classifier.pool_weights_}
        if relevance := self._find_relevance():
            about["relevance"] = relevance
        return about

    def tell(self) -> str:
        """Give the weights of the members."""
        weights = sorted(self.classifier.pool_weights_.items(), key=lambda item: -item[1])
        told = ", ".join(f"{name} {weight:.2f}" for name, weight in weights if weight > 0)
        return f"Exponents of the pool's members (they need not add up to 1): {told}"

    def make_sections(self) -> dict[str, Any]:
        """Show the members, and the columns by their relevance."""
        found = self._find_relevance()
        named = zip(shorten_all(list(found)), found.values(), strict=True)
        ranked = sorted((pair for pair in named if pair[1] > 0), key=lambda pair: -pair[1])
        return {"pool": {"columns": ranked}}

    def _find_relevance(self) -> dict[str, float]:
        """Return the relevance of each column, in the order in which the pool was given them."""
        relevance = getattr(self.classifier, "feature_relevance_", ())
        default = [f"x{j}" for j in range(len(relevance))]
        names = getattr(self.classifier, "feature_names_in_", default)
        return {str(name): float(each) for name, each in zip(names, relevance, strict=False)}

    def tell_use(self, n_categories: int, standardised: bool) -> str:
        """Say how a column is compared."""
        if n_categories:
            return "an indicator for each category; beyond 30 categories the rarest are merged"
        return "rank-transformed or whitened, depending on the member"

    def explain(self) -> list[str]:
        """Say in sentences how the result was computed."""
        return [
            "Class probabilities from neighbours in several metrics, each calibrated by a "
            "regression and averaged over the number of neighbours k, from an additive logistic "
            "regression and from boosted trees are multiplied with exponents that maximise the "
            "leave-one-out log score less a penalty for unequal weights "
            "(PooledNeighborsClassifier).",
            "For leave-one-out probabilities a row is no neighbour of itself, and whatever is "
            "fitted to the labels is fitted without the row's fold.",
            *tell_searches(self.classifier.diagnostics_["search"]),
        ]


def tell_searches(searches: dict[str, dict[str, Any]]) -> list[str]:
    """Say that neighbours were found exactly or, for each approximate search, what it found."""
    told = []
    for metric, search in searches.items():
        if not search["exact"]:
            where = f" in the metric {metric}" if metric else ""
            told.append(
                f"Neighbours{where} were found approximately (search {search['name']}): "
                f"{percent(search['recall'], 1)} ± {100 * search['recall_error']:.1f}\xa0% of the "
                "nearest of a sample of rows, the recall."
            )
    return told or ["Neighbours were found exactly."]


def describe(classifier: Any) -> Any:
    """Return what is to be known of a classifier, a :class:`Described`."""
    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    if isinstance(classifier, PooledNeighborsClassifier):
        return DescribedPool(classifier)
    if isinstance(classifier, BayesianKNeighborsClassifier):
        return DescribedPosterior(classifier)
    return Described(classifier)
