"""What each section of the report says, as text and numbers for the template to lay out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from markupsafe import Markup

from bayesknn.plots.style import COLOURS
from bayesknn.report import figures
from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import MAX_CATEGORIES
from bayesknn.report.explanation import find_speakers, rank_columns
from bayesknn.report.nested_folds import PAPER, POOL
from bayesknn.report.per_class import tell_majority
from bayesknn.report.plane import View
from bayesknn.report.predictions import LEAVE_ONE_OUT
from bayesknn.report.scores import Scores, percent, score
from bayesknn.report.short_names import shorten, shorten_all

_MAX_CASES = 12
_MAX_CASE_COLUMNS = 6
_MAX_EXPLAINED = 8
_MAX_SPEAKERS = 3
_MAX_IMPORTANT = 30
_MAX_RELEVANT = 15
# Classes whose colours can be told apart in a picture, and parts of a bar that can be seen.
_MAX_COLOURED = 20
_MAX_PARTS = 8
# Columns and remarks that stand open; the others unfold.
MAX_OPEN = 30
_METRICS = {
    "robust": "every column alike, by ranks",
    "within": "Euclidean after whitening within the classes",
    "discriminant": "the same, stretched along the class means",
    "relevance": "columns weighted by what they say about the class",
    "evidence": "class shares along each column",
}
# The title of each section, and what a reader should do with it.
SECTIONS = {
    "rare": (
        "What is found of the rare classes",
        "Do not judge by the error: decide how many rows you can look at, take those where the "
        "rare class is likeliest, or say what a miss costs with bayesknn predict --loss.",
    ),
    "zones": (
        "Where one class leads for sure",
        "Act on the class where it is settled which one leads, and have a person look at the "
        "other rows.",
    ),
    "rows": (
        "The rows",
        "See whether the wrong ones lie together: there, a further column may tell the classes "
        "apart.",
    ),
    "confusion": (
        "Who is taken for whom",
        "Ask of the largest confusions whether they matter; if they do, look for a column that "
        "tells those two classes apart.",
    ),
    "scores": (
        "How far to trust the probabilities",
        "Where the bars cross the line, take the probabilities at their word; elsewhere trust "
        "their order more than their size.",
    ),
    "comparison": (
        "How it compares",
        "If another classifier has a clearly smaller log-loss here, use that one.",
    ),
    "pool": (
        "Which metric and which columns matter",
        "Check that the columns at the top will be known when you predict, and none of them "
        "gives the class away.",
    ),
    "uncertain": (
        "The most uncertain cases",
        "Look at these rows first: check their values and their class, and decide them by hand.",
    ),
    "importance": (
        "What each column is worth",
        "Be suspicious of a column that is worth more than you expected, and try to leave out "
        "those that are worth nothing (--drop).",
    ),
    "posterior": (
        "Neighbours and their strength",
        "See that neither piles up at the largest value that was allowed; if k does, raise "
        "--max-neighbors.",
    ),
    "data": (
        "The data",
        "Check that every column was taken for what it is; --categorical, --drop and --keep "
        "change it.",
    ),
    "diagnostics": (
        "How it was computed",
        "Cite this where the numbers are used, and settle first what it calls doubtful.",
    ),
    "repeat": (
        "To do it again",
        "Keep these commands with the results.",
    ),
}
# Above this many rows the classical rule is not fitted for comparison.
_MAX_CLASSICAL = 20_000

_LIKELIHOODS = {
    "coherent": "The labels of all rows are one Markov random field (the coherent likelihood). On "
    "some data its probabilities are less sharp than those of the pseudo-likelihood: compare the "
    "log-loss of --likelihood pseudo.",
    "pseudo": "The product of each row's probability given all others stands for the likelihood "
    "(the pseudo-likelihood), which is the leave-one-out log score of the rule.",
    "holmes-adams": "The likelihood is Holmes and Adams' product, which no joint law of the "
    "labels has.",
}


def tell_lead(analysis: Analysis, rare: dict[str, str] | None) -> str:
    """Say in a few sentences what was found; of the rare classes first, if there are any."""
    training, plan = analysis.training, analysis.plan
    error = score(training.probabilities, training.actual).error
    text = f"{rare['words']} " if rare else ""
    text += (
        f"{_count(len(training.rows), 'row')} of {_count(len(plan.used), 'column')} and "
        f"{_count(len(training.classes), 'class', 'classes')}. Each left out in turn, "
        f"{percent(1 - error, 1)} of the rows are classified right."
    )
    if training.zones is None:
        return text
    sure = training.zones >= 0
    text += f" Which class leads is settled for {percent(sure.mean())} of them"
    if sure.any():
        right = np.mean(training.winners[sure] == training.actual[sure])
        text += f", and {percent(right, 1)} of these are right"
    return f"{text}."


def make_cards(analysis: Analysis, rare: dict[str, str] | None) -> list[dict[str, str]]:
    """Give the headline numbers."""
    scores = analysis.scores()
    own = scores["leave-one-out"]
    clf = analysis.classifier
    cards = [
        {
            "value": f"{percent(own.error, 1)}",
            "label": f"leave-one-out error; {tell_majority(analysis, analysis.training.actual)}",
        },
        {"value": f"{own.log_loss:.3f}", "label": "leave-one-out log-loss"},
    ]
    if analysis.training.share_sure is not None:
        share = percent(analysis.training.share_sure)
        cards.append({"value": share, "label": "rows where the lead is settled"})
    if analysis.is_pooled:
        name, weight = max(clf.pool_weights_.items(), key=lambda item: item[1])
        cards.append({"value": name, "label": f"metric that counts most, weight {weight:.2f}"})
    else:
        low, high = analysis.k_interval
        cards += [
            {
                "value": f"{analysis.k_mean:.1f}",
                "label": f"neighbours k on average; {low} to {high} hold 95\xa0%",
            },
            {"value": f"{clf.beta_mean_:.2f}", "label": f"strength β, ± {clf.beta_sd_:.2f}"},
        ]
    if analysis.test is not None and "test" in scores:
        test, actual = scores["test"], analysis.test.actual[analysis.test.judged]
        cards[2:2] = [
            {
                "value": f"{percent(test.error, 1)}",
                "label": f"error on {test.n:,} test rows; {tell_majority(analysis, actual)}",
            },
            {"value": f"{test.log_loss:.3f}", "label": "test log-loss"},
        ]
    return [{"value": rare["value"], "label": rare["label"]}, *cards] if rare else cards


def make_zones(analysis: Analysis, view: View, colours: list[str]) -> dict[str, Any]:
    """Show the rows in a plane and where it is settled which class leads."""
    training = analysis.training
    share, level = training.share_sure, f"{100 * analysis.level:g}\xa0%"
    zones, filled = training.zones, "rows for which it is settled, when left out, which class leads"
    if zones is None or share is None:
        zones = np.where(training.winners == training.actual, training.winners, -1)
        filled = "rows that are classified right when left out"
        words = "What the rows look like, and for which of them the likeliest class is wrong."
    else:
        words = (
            f"A class leads for sure where the {level} interval of its probability lies above "
            f"that of every other class, as it does for {percent(share)} of the training rows. It "
            "is then settled which class is the most probable; how probable it is, is another "
            "matter."
        )
    labels, few = training.actual, len(colours) <= _MAX_COLOURED
    tinted = view.plane is not None and few
    if not few:
        labels, colours = (training.winners == labels).astype(int), [COLOURS[1], COLOURS[0]]
    caption = f"Training rows over {view.names[0]} and {view.names[1]}. " if tinted else ""
    caption += view.words
    if tinted:
        caption += (
            " The plane is tinted where it is settled which class leads, and clear where it is not."
        )
    else:
        caption += f" Filled: {filled}; hollow: the others."
    if not few:
        caption += (
            f" The colours of {len(training.classes)} classes could not be told apart: blue "
            "triangles are rows that are classified right when left out, orange circles those "
            "that are not."
        )
    n = len(view.points)
    if n > figures.MAX_POINTS:
        caption += f" {figures.MAX_POINTS:,} of {n:,} rows are drawn, chosen at random."
    drawn = figures.draw_zones(
        view.points,
        labels,
        colours,
        view.names,
        zones=None if tinted else zones,
        plane=view.plane if tinted else None,
        plane_zones=view.zones,
    )
    return {
        "known": training.zones is not None,
        "words": words,
        "figure": Markup(drawn),
        "caption": caption.strip(),
    }


def make_scores(analysis: Analysis) -> dict[str, Any]:
    """Judge the probabilities, beside the classical rule and the most common class."""
    training = analysis.training
    labels = training.actual
    table = [
        _score_row(
            "pooled neighbours" if analysis.is_pooled else "Bayesian kNN", basis, found, True
        )
        for basis, found in analysis.scores().items()
    ]
    if analysis.comparison is None and not analysis.is_pooled:
        table += _classical_rows(analysis)
    shares = np.bincount(labels, minlength=len(training.classes)) / len(labels)
    everywhere = np.broadcast_to(shares, training.probabilities.shape)
    table.append(_score_row("the classes' shares", "training rows", score(everywhere, labels)))
    probabilities, basis = training.probabilities, "left out one by one"
    if analysis.test is not None and len(rows := analysis.test.judged):
        probabilities, labels = analysis.test.probabilities[rows], analysis.test.actual[rows]
        basis = "of the test table"
    return {
        "words": "Error is the share of rows classified wrong; log-loss and the Brier score also "
        "ask whether the probabilities were right. Smaller is better in all of them.",
        "table": table,
        "reliability": Markup(figures.draw_reliability(probabilities, labels)),
        "reliability_caption": f"Rows {basis}, grouped by the probability of their likeliest "
        "class; how many there are stands below. On the line the prediction is right as often as "
        "it says; bars are 95\xa0% intervals.",
    }


def make_cases(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """List the rows about which the least is known."""
    found = analysis.predictions
    frame = analysis.frame if analysis.test is None else analysis.test_frame
    which = "training" if found.basis == LEAVE_ONE_OUT else "test"
    order = found.find_uncertain(_MAX_CASES)
    columns = analysis.plan.used[:_MAX_CASE_COLUMNS]
    winners = found.winners
    rows = []
    for i in order:
        g = winners[i]
        interval = ""
        if found.intervals is not None:
            low, high = found.intervals[i, g]
            interval = f"{low:.2f} to {high:.2f}"
        parts = np.argsort(-found.probabilities[i], kind="stable")[:_MAX_PARTS]
        shares = found.probabilities[i, parts]
        rows.append(
            classes[g]
            | {
                "number": f"{found.rows[i]:,}",
                "words": "; ".join(
                    f"{classes[c]['name']} {percent(share)}"
                    for c, share in zip(parts, shares, strict=True)
                ),
                "parts": [
                    {"width": f"{100 * share:.2f}", "colour": classes[c]["colour"]}
                    for c, share in zip(parts, shares, strict=True)
                ],
                "interval": interval,
                "actual": "" if found.actual_names is None else shorten(found.actual_names[i]),
                "values": [shorten(_show(frame[name].iloc[i])) for name in columns],
            }
        )
    more = len(analysis.plan.used) - len(columns)
    return {
        "words": f"The {which} rows whose predicted class is most likely to be wrong"
        + (
            f", with the {100 * analysis.level:g}\xa0% interval of its probability."
            if found.intervals is not None
            else "."
        )
        + (" Grey: all other classes." if len(classes) > _MAX_PARTS else "")
        + (f" {_count(more, 'further column')} not shown." if more else ""),
        "rows": rows,
        "columns": shorten_all(columns),
        "known": found.actual_names is not None,
        "intervals": found.intervals is not None,
    }


def make_speakers(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Show which training rows speak for the two likeliest classes of the most uncertain rows."""
    found, training = analysis.predictions, analysis.training
    at = found.find_uncertain(_MAX_EXPLAINED)
    rows = []
    for i, sides in zip(at, find_speakers(analysis, at, _MAX_SPEAKERS), strict=True):
        told = [
            classes[side.label]
            | {
                "probability": percent(found.probabilities[i, side.label]),
                "speakers": [
                    {"number": f"{training.rows[j]:,}", "influence": f"{influence:.2g}"}
                    for j, influence in zip(side.rows, side.influence, strict=True)
                ],
            }
            for side in sides
        ]
        rows.append({"number": f"{found.rows[i]:,}", "sides": told})
    return {
        "words": "The training rows of its two likeliest classes that move each of these rows "
        "most: each is followed by what it adds to the log odds of its own class."
        + (
            " A row does not speak for itself and is left out here; what the others add is what "
            "they would add at a new row in its place, of which it would be a neighbour."
            if found.basis == LEAVE_ONE_OUT
            else ""
        ),
        "rows": rows,
    }


def make_importance(analysis: Analysis) -> dict[str, Any] | None:
    """Show by how much the log-loss grows when a column is permuted."""
    found = rank_columns(analysis)
    if found is None:
        return None
    words = (
        "How much the log-loss grows when the values of a column change places among "
        f"{found.n_rows:,} {'test' if found.on_test else 'training'} rows; ± is the standard error "
        "over the permutations. Columns that say the same stand in for each other, and then "
        "neither seems to matter."
    )
    if not found.on_test:
        words += (
            " Each training row knows its own class until a column is permuted, so these numbers "
            "are optimistic, more so where few neighbours count; with test rows of known class "
            "they are not."
        )
    if len(found.names) > _MAX_IMPORTANT:
        words += f" {len(found.names) - _MAX_IMPORTANT} less important columns are not listed."
    top = max(float(found.mean[0]), np.finfo(float).tiny)
    return {
        "words": words,
        "columns": [
            {
                "name": name,
                "width": f"{100 * max(mean, 0.0) / top:.1f}",
                "loss": f"{mean:.3f} ± {error:.3f}",
            }
            for name, mean, error in zip(
                shorten_all(found.names), found.mean, found.error, strict=True
            )
        ][:_MAX_IMPORTANT],
    }


def make_comparison(analysis: Analysis) -> dict[str, Any] | None:
    """Show how the classifier fares beside others on the same rows."""
    if analysis.comparison is None:
        return None
    found, n_folds = analysis.comparison
    own = POOL if analysis.is_pooled else PAPER
    n, n_rows = next(iter(found.values())).n, len(analysis.training.rows)
    some = "" if n == n_rows else f", chosen at random from {n_rows:,},"
    return {
        "words": f"{n:,} rows{some} in {n_folds} folds: each classifier is fitted without a fold, "
        "makes all its choices there, and predicts the fold.",
        "table": [
            _score_row(name, "", scores, own=name.startswith(own)) for name, scores in found.items()
        ],
    }


def make_pool(analysis: Analysis) -> dict[str, Any] | None:
    """Show which metric and which columns matter to the pool."""
    if not analysis.is_pooled:
        return None
    clf = analysis.classifier
    metrics = sorted(clf.pool_weights_, key=lambda name: -clf.pool_weights_[name])
    columns = []
    if hasattr(clf, "feature_relevance_"):
        found = zip(shorten_all(list(analysis.model.kinds)), clf.feature_relevance_, strict=True)
        ranked = sorted(found, key=lambda pair: -pair[1])
        columns = [
            {"name": name, "share": percent(share), "width": f"{100 * share / ranked[0][1]:.1f}"}
            for name, share in ranked
            if share > 0
        ]
    return {
        "words": "Each metric measures distances in its own way and gives class probabilities of "
        "its own; they are multiplied with these weights, which leave-one-out chose.",
        "metrics": [
            {
                "name": name,
                "about": _METRICS.get(name, ""),
                "weight": f"{clf.pool_weights_[name]:.2f}",
                "log_loss": f"{-clf.member_log_scores_[name]:.3f}",
            }
            for name in metrics
        ],
        "columns": columns[:_MAX_RELEVANT],
        "columns_words": "How much each column says about the class to randomised trees; columns "
        "that do not beat permuted ones are not listed."
        + (f" {len(columns) - _MAX_RELEVANT} more are." if len(columns) > _MAX_RELEVANT else ""),
    }


def make_posterior(analysis: Analysis) -> dict[str, Any] | None:
    """Show the law of k and beta, where there is one."""
    if analysis.is_pooled:
        return None
    clf = analysis.classifier
    draws = np.asarray(clf.posterior_["posterior"]["beta"].values).ravel()
    low, high = (float(end) for end in np.quantile(draws, [0.025, 0.975]))
    mode = int(clf.k_values_[np.argmax(clf.k_probabilities_)])
    ends = analysis.k_interval
    k_figure, beta_figure = figures.draw_posterior(clf)
    return {
        "words": "k is the number of neighbours that a row's class depends on, and β how strongly: "
        "at β = 0 it does not depend on them at all. Neither is chosen: every prediction is "
        "averaged over both, as the data weigh them.",
        "k": Markup(k_figure),
        "k_caption": f"Most probable: k = {mode} "
        f"(probability {clf.k_probabilities_.max():.2f}); {ends[0]} to {ends[1]} hold 95\xa0%; "
        f"up to {clf.k_values_[-1]:,} was allowed.",
        "beta": Markup(beta_figure),
        "beta_caption": f"Mean {clf.beta_mean_:.3f}, standard deviation {clf.beta_sd_:.3f}; "
        f"{low:.2f} to {high:.2f} hold 95\xa0%; up to {clf.beta_max_:.3g} was allowed.",
    }


def describe_columns(analysis: Analysis) -> list[dict[str, Any]]:
    """Tell what each column holds and what became of it."""
    plan, frame = analysis.plan, analysis.frame
    steps = analysis.model.pipeline[0].named_transformers_
    gower = getattr(analysis.classifier, "metric", None) == "gower"
    use = "divided by its range (Gower)" if gower else "as it is"
    if analysis.is_pooled:
        use = "as each metric takes it"
    if "standardise" in getattr(steps.get("numbers"), "named_steps", {}):
        use = "standardised"
    found = []
    others = [name for name in frame.columns if name != plan.target]
    for name, short in zip(others, shorten_all(others), strict=True):
        column = frame[name]
        if name in plan.dropped:
            about = {"kind": "left out", "use": plan.dropped[name], "out": True}
        elif name in plan.numeric:
            dates = plan.kinds[name] == "date"
            about = {
                "kind": "dates" if dates else "numbers",
                "use": "days, " * dates + use,
                "out": False,
            }
        else:
            kind = "truth values" if plan.kinds[name] == "truth" else "categories"
            way = use if analysis.is_pooled else _use_of(column, gower)
            about = {"kind": kind, "use": way, "out": False}
        names = {"name": short, "whole": name, "short": short == name}
        found.append({**names, "values": _sum_up(column), **about})
    return found


def tell_diagnostics(analysis: Analysis) -> list[str]:
    """Say in words how the result was computed and whether to trust it."""
    if analysis.is_pooled:
        return [
            "Class probabilities from neighbours in several metrics, each linked to the classes by "
            "a regression and averaged over the number of neighbours k, are multiplied with "
            "weights that maximise the leave-one-out log score (PooledNeighborsClassifier).",
            "Leave-one-out is honest: metrics that see the labels, and the weights, come from "
            "folds without the row.",
            *tell_search(analysis),
            *([] if analysis.warnings else ["Nothing was found that speaks against the result."]),
        ]
    clf, report = analysis.classifier, analysis.classifier.diagnostics_
    sentences = [
        _LIKELIHOODS[clf.likelihood],
        f"The posterior of (β, k) was reached by {report['inference']}"
        + (", as asked for." if report["reason"] == "asked for" else f": {report['reason']}."),
        f"{_tell_prior(clf)} Distances are {clf.metric}.",
        *tell_search(analysis),
    ]
    if clf.class_prior is not None:
        shares = ", ".join(
            f"{shorten(str(name))} {percent(share, 1)}" for name, share in clf.class_prior.items()
        )
        sentences.append(f"The classes' frequencies were given: {shares}.")
    if report["inference"] == "grid":
        error = report.get("log_normalizer_error", 0.0)
        if error > 0:
            sentences.append(
                f"The normalising constant was estimated by simulation: the Monte Carlo error of "
                f"log P(k) is at most {error:.2g} where k matters, that of the mean of β "
                f"{report['mcse']['beta']:.2g} and of k {report['mcse']['k']:.2g}."
            )
        else:
            sentences.append("Nothing was simulated, so there is no Monte Carlo error.")
    else:
        n_draws = int(np.prod(clf.posterior_["posterior"]["beta"].shape))
        sentences.append(
            f"{n_draws:,} draws are worth {report['ess']['beta']:,.0f} independent ones for β and "
            f"{report['ess']['k']:,.0f} for k; R-hat is {report['rhat']['beta']:.3f} and "
            f"{report['rhat']['k']:.3f} (at most 1.01 is wanted)."
        )
        rates = [rate for rate in report["acceptance"] if np.isfinite(rate)]
        if rates:
            sentences.append(
                f"{percent(min(rates))} to {percent(max(rates))} of the moves were accepted."
            )
    if hasattr(clf, "log_evidence_"):
        sentences.append(
            f"The log evidence is {clf.log_evidence_:.2f}"
            + (f" ± {clf.log_evidence_error_:.2f}." if clf.log_evidence_error_ else ".")
        )
    if not analysis.warnings:
        sentences.append("Nothing was found that speaks against the computation.")
    return sentences


def tell_search(analysis: Analysis) -> list[str]:
    """Say how neighbours were found and, of an approximate search, how many of them."""
    found = analysis.classifier.diagnostics_["search"]
    # The pool has a search for each of its metrics.
    searches = found if analysis.is_pooled else {"": found}
    said: dict[str, list[str]] = {}
    for metric, search in searches.items():
        if search["exact"]:
            text = "Neighbours were found exactly"
        else:
            text = (
                f"Neighbours were found approximately (search {search['name']}): "
                f"{percent(search['recall'], 1)} ± {100 * search['recall_error']:.1f}\xa0% of the "
                "nearest of a sample of rows, the recall"
            )
        said.setdefault(text, []).append(metric)
    return [
        f"{text}." if len(said) == 1 else f"{text}, in the metric {' and '.join(metrics)}."
        for text, metrics in said.items()
    ]


def _tell_prior(clf: Any) -> str:
    from bayesknn.model import UniformPrior

    place = f"over k from 1 to {clf.k_values_[-1]:,} and β from 0 to {clf.beta_max_:.3g}"
    if clf.prior is None or isinstance(clf.prior, UniformPrior):
        return f"The prior is uniform {place}."
    what = "a function" if callable(clf.prior) else "an array"
    if hasattr(clf.prior, "log_density"):
        what = f"of type {type(clf.prior).__name__}"
    return f"The prior is not uniform: it was given, {what}, {place}."


def _classical_rows(analysis: Analysis) -> list[dict[str, Any]]:
    training, clf = analysis.training, analysis.classifier
    if len(training.rows) > _MAX_CLASSICAL:
        return []
    from bayesknn.classical import ClassicalKNeighborsClassifier

    points = analysis.model.prepare(analysis.frame)
    classical = ClassicalKNeighborsClassifier(
        metric=clf.metric, max_neighbors=clf.graph_.k_max, n_jobs=clf.n_jobs
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the metric has said it before
        classical.fit(points, training.actual)
    k = classical.n_neighbors_
    name = f"classical kNN, k = {k} by leave-one-out"
    error = classical.loo_errors_[k - 1]
    rows = [_score_row(name, LEAVE_ONE_OUT, Scores(len(training.rows), error, np.nan, np.nan))]
    if analysis.test is not None and len(judged := analysis.test.judged):
        predicted = classical.predict(analysis.model.prepare(analysis.test_frame.iloc[judged]))
        error = float(np.mean(predicted != analysis.test.actual[judged]))
        rows.append(_score_row(name, "test", Scores(len(predicted), error, np.nan, np.nan)))
    return rows


def _score_row(name: str, basis: str, found: Scores, own: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "basis": basis,
        "own": own,
        "n": f"{found.n:,}",
        "error": f"{percent(found.error, 1)}",
        # A vote that says never of what then happens has lost everything.
        "log_loss": "" if np.isnan(found.log_loss) else f"{found.log_loss:.3f}".replace("inf", "∞"),
        "brier": "" if np.isnan(found.brier) else f"{found.brier:.3f}",
    }


def _use_of(column: Any, gower: bool) -> str:
    if gower:
        return "equal or not (Gower)"
    if column.nunique() <= MAX_CATEGORIES:
        return "an indicator for each category"
    return f"indicators of the {MAX_CATEGORIES - 1} most common categories, one for the others"


def _sum_up(column: Any) -> str:
    there = column.dropna()
    missing = f"; {len(column) - len(there):,} missing" if len(there) < len(column) else ""
    if len(there) == 0:
        return "none"
    if column.dtype.kind == "M":
        return f"{there.min():%Y-%m-%d} to {there.max():%Y-%m-%d}{missing}"
    if column.dtype.kind in "iuf":
        # Of halves, since the sum of two large values may be too large.
        middle = 2 * (there / 2).median()
        low, middle, high = map(_show, (there.min(), middle, there.max()))
        return (f"{low} to {high}, median {middle}" if low != high else low) + missing
    counts = there.astype(str).value_counts()
    top = ", ".join(
        f"{shorten(name)} ({percent(n / len(there))})" for name, n in counts.head(3).items()
    )
    more = f" and {len(counts) - 3:,} more" if len(counts) > 3 else ""
    return top + more + missing


def _show(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.4g}"
    return str(value)


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
