"""A fitted classifier, how columns become points for it, and what it expects of a table.

By default every numeric column is standardised and every category becomes indicators of 0 and 1.
The two scales agree: two independent rows differ by 2 on average in the square of a standardised
column, and two different categories differ by 2 in the square of their indicators. Above
``MAX_CATEGORIES`` the rarer categories share one indicator, as do categories that training did
not see. With Gower's distance columns are compared as they are.

The rest of this folder asks an adapter, not the classifier, where the two that we have differ.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesknn._estimator import params_of_fit
from bayesknn._utils.extras import require
from bayesknn._utils.saving import fingerprint
from bayesknn.likelihood import LIKELIHOODS
from bayesknn.report import schema
from bayesknn.report.columns import MAX_CATEGORIES, NUMERIC, ColumnPlan, as_measured
from bayesknn.report.reading import find_model
from bayesknn.report.words import count, join, percent, say_of_columns, shorten

if TYPE_CHECKING:
    import pandas
    from sklearn.pipeline import Pipeline


class ReportAdapter:
    """What the report asks of any classifier, which need not be fitted.

    Attributes
    ----------
    title : str
        Name of the model in the first line of ``bayesknn fit``.
    is_slow : bool
        Whether a prediction takes about ten times as long as one of the paper's model.
    fills : str
        What takes the place of a missing number by itself, empty if a missing value is an error.
    unseen : str
        What becomes of a category that training did not see.
    takes_categories : bool
        Whether it compares numbers and categories as they are.
    """

    title = "classifier"
    is_slow = False
    takes_categories = False
    fills = ""
    unseen = "they count as rare ones"

    def __init__(self, classifier: Any):
        self.classifier = classifier
        self.params = params_of_fit(classifier)
        self.is_gower = self.params.get("metric") == "gower"
        self.takes_categories |= self.is_gower

    @property
    def _odds_ratios(self) -> np.ndarray | None:
        """The factors a_g of ``class_prior``."""
        return self.classifier.class_weight_

    @property
    def score_weights(self) -> np.ndarray:
        """Weight of each training row in scores, before ``class_prior``; 0 for one in no score."""
        return getattr(self.classifier, "_score_weights", np.ones(len(self.classifier._labels)))

    @property
    def class_prior(self) -> np.ndarray | None:
        """Class frequencies that the classifier was fitted for; None for those of training."""
        ratios = self._odds_ratios
        if ratios is None:
            return None
        sums = ratios * np.bincount(self.classifier._labels, self.score_weights)
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


class PosteriorAdapter(ReportAdapter):
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


class PoolAdapter(ReportAdapter):
    """The pool: neighbours in several metrics, a logistic regression and boosted trees."""

    title = "the pool of nearest neighbours, a logistic regression and boosted trees"
    model = "pooled"
    is_slow = True
    takes_categories = True
    fills = "mean"
    unseen = "they count as none of the known ones"

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
    return ReportAdapter(classifier)


def build_pipeline(
    plan: ColumnPlan, classifier: Any, *, scale: bool = True, impute: bool = False
) -> Pipeline:
    """Put the preparation of the columns before a classifier.

    Parameters
    ----------
    plan : ColumnPlan
        Which columns are numeric and which are categorical.
    classifier : estimator
        Its ``metric`` decides how categories are compared; a pool takes the columns as they are.
    scale : bool, default=True
        Whether numeric columns are standardised.
    impute : bool, default=False
        Whether a missing number becomes the column's median and a missing category one of its
        own.

    Returns
    -------
    sklearn.pipeline.Pipeline
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    adapter = adapt(classifier)
    numbers: list[tuple[str, Any]] = []
    words: list[tuple[str, Any]] = []
    if impute and not adapter.fills:
        numbers.append(("fill", SimpleImputer(strategy="median")))
        words.append(("fill", SimpleImputer(strategy="constant", fill_value="(missing)")))
    if not adapter.takes_categories:
        numbers += [("standardise", StandardScaler())] * scale
        encoder = OneHotEncoder(
            max_categories=MAX_CATEGORIES,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        words.append(("indicate", encoder))
    parts = [
        ("numbers", Pipeline(numbers) if numbers else "passthrough", plan.numeric),
        ("categories", Pipeline(words) if words else "passthrough", plan.categorical),
    ]
    # An indicator may be called as another column is: "town_a" of "town".
    alike = any(name.startswith(f"{each}_") for each in plan.categorical for name in plan.used)
    transformer = ColumnTransformer(parts, verbose_feature_names_out=alike)
    # A frame, by which classifiers know categories from numbers and call columns by their names.
    transformer.set_output(transform="pandas")
    return Pipeline([("columns", transformer), ("classifier", classifier)])


@dataclass
class Model:
    """A pipeline and what it expects of a table.

    Attributes
    ----------
    pipeline : sklearn.pipeline.Pipeline
    target : str
        The column that held the classes.
    kinds : dict of str to str
        The columns it reads, and the kind of each in training; :func:`read_table` takes it.
    categories : dict of str to list of str
        Of each column that has some, those of training.
    identifiers : list of str
        Columns that told the rows of the training table apart.
    fills : str
        What takes the place of missing numbers, ``"mean"`` or ``"median"``, or ``"pipeline"`` if
        a pipeline of the user decides; empty if a missing value is an error.
    ranges : dict of str to list of two floats
        The least and the largest number of each numeric column in training, dates in days.
    """

    pipeline: Pipeline
    target: str
    kinds: dict[str, str]
    categories: dict[str, list[str]]
    identifiers: list[str]
    fills: str
    ranges: dict[str, list[float]]

    @classmethod
    def of_table(
        cls, pipeline: Pipeline, plan: ColumnPlan, frame: pandas.DataFrame, fills: str
    ) -> Model:
        """Keep of a training table what is expected of others.

        Parameters
        ----------
        pipeline : sklearn.pipeline.Pipeline
            Fitted or not.
        plan : ColumnPlan
        frame : pandas.DataFrame
            The training rows, measured.
        fills : str
        """
        categories = {
            name: sorted(map(str, frame[name].dropna().unique())) for name in plan.categorical
        }
        ranges = {n: [float(frame[n].min()), float(frame[n].max())] for n in plan.numeric}
        return cls(pipeline, plan.target, plan.kinds, categories, plan.identifiers, fills, ranges)

    @property
    def classifier(self) -> Any:
        """The last step."""
        return self.pipeline[-1]

    @property
    def adapter(self) -> Any:
        """What the report asks instead of the classifier."""
        return adapt(self.classifier)

    def transform(self, frame: pandas.DataFrame) -> Any:
        """Return accepted rows (:func:`accept_rows`) as points, as the classifier takes them."""
        columns = as_measured(frame, self.kinds)
        for name in self.categories if self.adapter.is_gower else ():
            if (unseen := self._find_unseen(columns, name)).any():
                raise ValueError(
                    f"column {name!r} holds the category {columns[name][unseen].iloc[0]!r}, which "
                    "training did not see and Gower's distance cannot compare"
                )
        with warnings.catch_warnings():
            # Unseen categories are counted and told by column.
            warnings.filterwarnings("ignore", "Found unknown categories", UserWarning)
            return self.pipeline[:-1].transform(columns)

    def is_fitted_to(self, points: Any) -> bool:
        """Whether these points are those of training, in the same order."""
        classifier = self.classifier
        if len(points) != len(classifier.loo_proba_):
            return False
        rows = fingerprint(points, np.zeros(len(points)))["rows"]
        return rows == classifier.diagnostics_.get("training", {}).get("rows")

    def describe_gaps(self, frame: pandas.DataFrame, table: str = "") -> list[str]:
        """Say how many values of accepted rows are filled in, and how many categories are new.

        Parameters
        ----------
        frame : pandas.DataFrame
        table : str
            What the table is called, as in ``" of the test table"``.
        """
        gaps = {name: int(frame[name].isna().sum()) for name in self.kinds}
        sentences = []
        fills = (f"with its {self.fills}", "with a category of its own")
        if self.fills == "pipeline":
            fills = ("in by the pipeline",) * 2
        for is_number, filled in zip((True, False), fills, strict=True):
            where = {
                name: f"in {count(n, 'row')}"
                for name, n in gaps.items()
                if n and (self.kinds[name] in NUMERIC) == is_number
            }
            sentences += say_of_columns(where, f"{table} has no value", f": filled {filled}")
        return sentences + self._describe_unseen(frame, table, mostly=False)

    def describe_shifts(self, frame: pandas.DataFrame, table: str = "") -> list[str]:
        """Say which columns of accepted rows mostly hold other values than those of training."""
        measured = as_measured(frame, self.kinds)
        where = {}
        for name, ends in self.ranges.items():
            values = measured[name].dropna()
            outside = values[~values.between(*ends)]
            # A few new rows lie beyond those of training by chance.
            if len(outside) > 0.1 * len(values):
                shown = [f"{each:.5g}" for each in (outside.iloc[0], *ends)]
                if self.kinds[name] == "date":
                    days = [math.floor(each) for each in (outside.iloc[0], *ends)]
                    shown = [str(np.datetime64(day, "D")) for day in days]
                where[name] = (
                    f"in {len(outside):,} of {count(len(values), 'row')}, such as {shown[0]} "
                    f"(training: {shown[1]} to {shown[2]})"
                )
        beyond = say_of_columns(where, f"{table} holds values outside the range of training")
        return beyond + self._describe_unseen(frame, table, mostly=True)

    def _describe_unseen(self, frame: pandas.DataFrame, table: str, mostly: bool) -> list[str]:
        """Name the columns most of whose categories are new, or the others with some."""
        where = {}
        for name in self.categories:
            new = frame[name][self._find_unseen(frame, name)]
            if len(new) and (2 * len(new) > frame[name].count()) == mostly:
                examples = " and ".join(repr(shorten(each)) for each in new.unique()[:2])
                where[name] = f"in {count(len(new), 'row')}, such as {examples}"
        what = f"{table} holds categories that training did not see"
        return say_of_columns(where, what, f": {self.adapter.unseen}")

    def _find_unseen(self, frame: pandas.DataFrame, name: str) -> Any:
        return frame[name].notna() & ~frame[name].isin(self.categories[name])


def save_model(model: Model, path: Path) -> None:
    """Write a fitted model to a file that no reader has to unpickle (skops).

    How many threads fitted it and whether it talked meanwhile is not kept. A digest of the parts
    is kept with them: it shows that a file was damaged, not that someone has forged it.
    """
    skops = require("skops.io", "saved models need", "persist")
    pipeline = copy(model.pipeline)
    classifier = copy(model.classifier).set_params(n_jobs=None, verbose=0)
    pipeline.steps = [*pipeline.steps[:-1], ("classifier", classifier)]
    skops.dump(replace(model, pipeline=pipeline), path)
    # Opened here: where it cannot be, zipfile would begin an empty one in its place.
    with open(path, "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.comment = schema.seal(archive)


def load_model(path: Path) -> Model:
    """Read a model that ``bayesknn fit`` wrote.

    It may hold arrays, numbers, text, and the estimators of scikit-learn and of ours that
    ``report/schema.py`` lists; any other type is rejected by name before anything is built. The
    parts are checked against each other, and two rows are predicted. A digest finds damage.
    Whoever writes a file on purpose can write a digest too, and a model that predicts what they
    want, so a model is still to be taken only from people whose software one would install.

    Parameters
    ----------
    path : Path
        The file, or the folder that ``bayesknn fit`` wrote.

    Returns
    -------
    Model
    """
    skops = require("skops.io", "saved models need", "persist")
    path = find_model(path)
    try:
        schema.check_file(path)
        model = skops.load(path, trusted=schema.TRUSTED)
        _check_model(model)
        return model
    except ValueError as error:
        raise ValueError(f"{path} is refused: {' '.join(str(error).split())[:500]}") from None
    except Exception as error:
        # A damaged or hostile file fails in as many ways as there are; none of them is ours.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{path} is not a model of bayesknn fit: {reason}") from None


def _check_model(model: Any) -> None:
    """Raise an exception if a model that was read is none, or cannot predict two rows.

    The rows hold the ends of each column's range, and two of its categories.
    """
    import pandas

    from bayesknn import BayesianKNeighborsClassifier, PooledNeighborsClassifier

    ours = (BayesianKNeighborsClassifier, PooledNeighborsClassifier)
    if type(model) is not Model or type(model.classifier) not in ours:
        raise ValueError("it does not hold a model that bayesknn fit wrote")
    columns: dict[str, Any] = {}
    for name, kind in model.kinds.items():
        if kind not in NUMERIC:
            columns[name] = (model.categories[name] * 2)[:2]
            continue
        columns[name] = ends = np.array(model.ranges[name], dtype=np.float64)
        if not np.isfinite(ends).all():
            raise ValueError(f"the range of its column {name!r} is not finite")
        if kind == "date":
            # In milliseconds, which hold any year.
            columns[name] = (ends * 86_400_000.0).astype("datetime64[ms]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = model.transform(pandas.DataFrame(columns))
        summary = model.classifier.predict_summary(points, 0.95)
    if not all(np.isfinite(each).all() for each in summary):
        raise ValueError("its predictions are not finite")
