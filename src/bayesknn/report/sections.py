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
from bayesknn.report.comparison import PAPER, POOL, LearningCurve
from bayesknn.report.explanation import find_effects, find_influential, rank_columns
from bayesknn.report.per_class import tell_majority
from bayesknn.report.plane import View
from bayesknn.report.predictions import LEAVE_ONE_OUT
from bayesknn.report.scores import Scores, percent, score
from bayesknn.report.short_names import shorten, shorten_all

_MAX_CASES = 12
_MAX_CASE_COLUMNS = 6
_MAX_EXPLAINED = 8
_MAX_INFLUENTIAL = 3
_MAX_IMPORTANT = 30
_MAX_RELEVANT = 15
_MAX_EFFECTS = 3
_MAX_EFFECT_CLASSES = 5
# Classes whose colours can be told apart in a picture, and parts of a bar that can be seen.
_MAX_COLOURED = 20
_MAX_PARTS = 8
# Columns and remarks that stand open; the others unfold.
MAX_OPEN = 30
_MEMBERS = {
    "robust": "neighbours: every column alike, by ranks",
    "within": "neighbours: Euclidean after whitening within the classes",
    "discriminant": "neighbours: the same, stretched along the class means",
    "relevance": "neighbours: columns weighted by their relevance to the class",
    "evidence": "neighbours: each column replaced by its estimated class probabilities",
    "additive": "no neighbours: logistic regression on these estimated class probabilities",
    "boosted": "no neighbours: gradient-boosted trees",
}
# The title of each section, and what a reader should do with it.
SECTIONS = {
    "rare": (
        "Rare classes: recall and precision",
        "Do not judge by the error: inspect as many rows as you can, those with the highest "
        "probability of the rare class first, or state what a miss costs with bayesknn predict "
        "--loss.",
    ),
    "zones": (
        "Rows with a clear leading class",
        "To choose an action, weigh the probabilities by what each error costs (bayesknn predict "
        "--loss, or predict_decision in Python): a decided row can still be wrong.",
    ),
    "confusion": (
        "Confusion matrix",
        "Check whether the largest confusions matter; if they do, look for a column that "
        "separates those two classes.",
    ),
    "thresholds": (
        "ROC and precision-recall curves",
        "Choose the threshold by what you need: high recall finds more of the class, high "
        "precision raises fewer false alarms.",
    ),
    "scores": (
        "Calibration (reliability diagram)",
        "Where the bars cross the line, the probabilities can be taken literally; elsewhere "
        "trust their order more than their size.",
    ),
    "comparison": (
        "Comparison with other classifiers (cross-validation)",
        "If another classifier has a clearly smaller log-loss here, use that one.",
    ),
    "pool": (
        "Weights of the members, feature relevance",
        "Check that the columns at the top will be known when you predict, and that none of them "
        "reveals the class.",
    ),
    "uncertain": (
        "Most uncertain rows",
        "Look at these rows first: check their values and their class.",
    ),
    "importance": (
        "Permutation importance and partial dependence",
        "Be suspicious of a column that is more important than you expected; try to leave out "
        "those of no importance (--drop).",
    ),
    "posterior": (
        "Posterior of k and β",
        "Check that neither has much probability at the largest value of the prior; if k does, "
        "raise --max-neighbors.",
    ),
    "data": (
        "Data and columns",
        "Check that every column was read as what it is; --categorical, --drop and --keep "
        "change it.",
    ),
    "diagnostics": (
        "How it was computed",
        "Quote this in a methods section; resolve any warning first.",
    ),
    "repeat": (
        "Reproduce this result",
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
    "holmes-adams": "The likelihood is Holmes and Adams' product, which is not the "
    "joint distribution of the labels under any model.",
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
    sure = training.zones >= 0
    level = f"{100 * analysis.level:g}\xa0%"
    text += f" At the {level} level, {percent(sure.mean())} of them are decided"
    if sure.any():
        wrong = np.mean(training.winners[sure] != training.actual[sure])
        text += f", that is, have a clear leading class; {percent(wrong, 1)} of these are wrong"
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
    share, level = percent(analysis.training.share_sure), f"{100 * analysis.level:g}\xa0%"
    cards.append({"value": share, "label": f"of the rows are decided at the {level} level"})
    if analysis.comparison is not None:
        cards.append(_card_of_rival(analysis))
    if not analysis.is_pooled:
        low, high = analysis.k_interval
        cards += [
            {
                "value": f"{analysis.k_mean:.1f}",
                "label": f"mean of k; 95\xa0% credible interval {low}–{high}",
            },
            {"value": f"{clf.beta_mean_:.2f}", "label": f"mean of β, ± {clf.beta_sd_:.2f}"},
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


def _card_of_rival(analysis: Analysis) -> dict[str, str]:
    """Name the best of the other classifiers, and give both log-losses in the same folds."""
    assert analysis.comparison is not None
    found, own = analysis.comparison.found, _own_name(analysis)
    mine = next(each for name, each in found.items() if name.startswith(own))
    others = [name for name in found if not name.startswith(own)]
    best = min(others, key=lambda name: found[name].scores.log_loss)
    return {
        "value": f"{found[best].scores.log_loss:.3f}",
        "label": f"log-loss of the best other classifier ({best}); this one has "
        f"{mine.scores.log_loss:.3f} in the same {analysis.comparison.n_folds} folds",
    }


def _own_name(analysis: Analysis) -> str:
    return POOL if analysis.is_pooled else PAPER


def make_zones(analysis: Analysis, view: View, colours: list[str]) -> dict[str, Any]:
    """Show the rows in a plane, and which of them have a clear leading class."""
    training = analysis.training
    share, level = percent(training.share_sure), f"{100 * analysis.level:g}\xa0%"
    words = (
        f"A row is decided if the {level} interval for the true probability of one class lies "
        f"above the intervals of all others: {share} of the training rows, each left out in turn. "
        f"{_tell_decided(training)}"
    )
    labels, few = training.actual, len(colours) <= _MAX_COLOURED
    tinted = view.plane is not None and few
    if not few:
        labels, colours = (training.winners == labels).astype(int), [COLOURS[1], COLOURS[0]]
    caption = f"Training rows over {view.names[0]} and {view.names[1]}. " if tinted else ""
    caption += view.words
    if tinted:
        caption += " Tinted: one class leads clearly. Clear: undecided."
    else:
        caption += " Filled: decided rows; hollow: the others."
    if not few:
        caption += (
            f" There are too many classes ({len(training.classes)}) for a colour each: blue "
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
        zones=None if tinted else training.zones,
        plane=view.plane if tinted else None,
        plane_zones=view.zones,
    )
    return {"words": words, "figure": Markup(drawn), "caption": caption.strip()}


def _tell_decided(training: Any) -> str:
    """Say what decided means, with the error among these rows as expected and as observed."""
    decided = training.zones >= 0
    words = "This says which class is the most probable one, not that the prediction is right"
    if not decided.any():
        return f"{words}."
    expected = training.expected_loss[decided].mean()
    observed = np.mean(training.winners[decided] != training.actual[decided])
    return (
        f"{words}: of the {decided.sum():,} decided rows {percent(expected, 1)} are expected to be "
        f"wrong, and {percent(observed, 1)} were."
    )


def make_scores(analysis: Analysis) -> dict[str, Any]:
    """Judge the probabilities, beside the classical rule and the class frequencies."""
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
    baseline = score(everywhere, labels)
    table.append(_score_row("baseline: class frequencies", "training rows", baseline))
    probabilities, labels, basis = analysis.evaluated()
    return {
        "words": "Error is the proportion of rows classified wrong; log-loss and the Brier score "
        "also judge the probabilities. Smaller is better for all three.",
        "table": table,
        "reliability": Markup(figures.draw_reliability(probabilities, labels)),
        "reliability_caption": f"{basis[:1].upper()}{basis[1:]}, grouped by the probability of "
        "the predicted class, at least ten rows a group; the histogram shows the number of rows. "
        "On the line, predictions are right as often as their probability says; bars are 95\xa0% "
        "intervals.",
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
        low, high = found.intervals[i, g]
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
                "interval": f"{low:.2f} to {high:.2f}",
                "actual": "" if found.actual_names is None else shorten(found.actual_names[i]),
                "values": [shorten(_show(frame[name].iloc[i])) for name in columns],
            }
        )
    more = len(analysis.plan.used) - len(columns)
    return {
        "words": f"The {which} rows whose predicted class is most likely to be wrong, with the "
        f"{100 * analysis.level:g}\xa0% interval of its probability."
        + (" Grey: all other classes." if len(classes) > _MAX_PARTS else "")
        + (f" {_count(more, 'further column')} not shown." if more else ""),
        "rows": rows,
        "columns": shorten_all(columns),
        "known": found.actual_names is not None,
    }


def make_influential(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any]:
    """Show the most influential training rows of the most uncertain rows."""
    found, training = analysis.predictions, analysis.training
    at = found.find_uncertain(_MAX_EXPLAINED)
    rows = []
    for i, sides in zip(at, find_influential(analysis, at, _MAX_INFLUENTIAL), strict=True):
        told = [
            classes[side.label]
            | {
                "probability": percent(found.probabilities[i, side.label]),
                "influential": [
                    {"number": f"{training.rows[j]:,}", "influence": f"{influence:.2g}"}
                    for j, influence in zip(side.rows, side.influence, strict=True)
                ],
            }
            for side in sides
        ]
        rows.append({"number": f"{found.rows[i]:,}", "sides": told})
    return {
        "words": "For each uncertain row, the training rows that most increase the log odds of its "
        "two likeliest classes, with the increase in brackets."
        + (
            " The row itself is left out; the increases are those at a new row with the same "
            "values."
            if found.basis == LEAVE_ONE_OUT
            else ""
        ),
        "rows": rows,
    }


def make_importance(analysis: Analysis, classes: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Show how much the log-loss grows when a column is permuted, and effects of the first ones."""
    found = rank_columns(analysis)
    if found is None:
        return None
    words = (
        "How much the log-loss grows when the values of a column are permuted among "
        f"{found.n_rows:,} {'test' if found.on_test else 'training'} rows; ± is the standard error "
        "over the permutations. Correlated columns can replace each other, and then neither seems "
        "important."
    )
    if not found.on_test:
        words += (
            " These rows were used for training, so the numbers are optimistic; test rows of "
            "known class (--test) avoid this."
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
        **_make_effects(analysis, found.names[:_MAX_EFFECTS], classes),
    }


def _make_effects(
    analysis: Analysis, names: list[str], classes: list[dict[str, Any]]
) -> dict[str, Any]:
    """Draw the partial dependence of the probabilities on some columns."""
    effects = find_effects(analysis, names)
    colours = [c["colour"] for c in classes]
    if len(classes) == 2:
        shown = [int(np.bincount(analysis.training.actual)[1] <= len(analysis.training.rows) / 2)]
    else:
        # Those that the columns change most.
        ranges = sum(np.ptp(effect.probabilities, axis=0) for effect in effects)
        shown = np.sort(np.argsort(-ranges, kind="stable")[:_MAX_EFFECT_CLASSES]).tolist()
    return {
        "effects": [
            {"figure": Markup(figures.draw_effect(effect, shown, colours, i)), "name": effect.name}
            for i, effect in enumerate(effects)
        ],
        "effect_classes": [classes[g] for g in shown],
        "effects_words": "Partial dependence: the mean predicted probability of a class if all of "
        f"{effects[0].n_rows:,} training rows had the value on the axis in one column, their other "
        "columns unchanged.",
    }


def make_comparison(analysis: Analysis) -> dict[str, Any] | None:
    """Show how the classifier fares beside others on the same rows."""
    if analysis.comparison is None:
        return None
    found, n_folds, curve = analysis.comparison
    n, n_rows = next(iter(found.values())).scores.n, len(analysis.training.rows)
    some = "" if n == n_rows else f", chosen at random from {n_rows:,},"
    best, own = analysis.comparison.best, _own_name(analysis)
    rows = [
        _score_row(name, "", each.scores, name.startswith(own), each.standard_errors)
        | {"best": name == best}
        for name, each in found.items()
    ]
    return {
        "words": f"{n:,} rows{some} in {n_folds} folds: each classifier is fitted without a fold, "
        "with its settings chosen there, and predicts the fold. ± is the standard error over the "
        "rows. The scores differ from leave-one-out because each fit has "
        f"{percent(1 - 1 / n_folds)} of the rows"
        + (f", and fewer than the {n_rows:,} of the table." if some else "."),
        "table": rows,
        "infinite": any(row["log_loss"] == "∞" for row in rows),
        "learning": Markup(figures.draw_learning(*curve[:3])),
        "learning_caption": _tell_learning(curve),
    }


def _tell_learning(curve: LearningCurve) -> str:
    """Say whether more rows would help, as far as the last increase tells."""
    gain, error = curve.last_gain, curve.last_gain_error
    if gain > 2 * error:
        verdict = "More rows are likely to help."
    elif gain > error:
        verdict = "More rows may help."
    else:
        verdict = "More rows of the same kind are unlikely to help much."
    return (
        "Log-loss of this classifier in the same folds when fitted to fewer rows, ± one standard "
        "error. From "
        f"{curve.sizes[-2]:,} to {curve.sizes[-1]:,} rows it changed by {-gain:+.3f} ± "
        f"{error:.3f}. {verdict}"
    )


def make_pool(analysis: Analysis) -> dict[str, Any] | None:
    """Show the weights of the pool's members, and the relevance of the columns."""
    if not analysis.is_pooled:
        return None
    clf = analysis.classifier
    members = sorted(clf.pool_weights_, key=lambda name: -clf.pool_weights_[name])
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
        "words": "The pool is an ensemble of neighbours in several metrics and two companions that "
        "use no neighbours. Each member gives class probabilities; they are multiplied with these "
        "weights as exponents, which leave-one-out chose and which need not add up to 1.",
        "members": [
            {
                "name": name,
                "about": _MEMBERS.get(name, ""),
                "weight": f"{clf.pool_weights_[name]:.2f}",
                "log_loss": f"{-clf.member_log_scores_[name]:.3f}",
            }
            for name in members
        ],
        "columns": columns[:_MAX_RELEVANT],
        "columns_words": "Relative relevance of the columns, by randomised trees; columns that are "
        "no more relevant than permuted ones are not listed."
        + (
            f" {len(columns) - _MAX_RELEVANT} further columns are relevant but not shown."
            if len(columns) > _MAX_RELEVANT
            else ""
        ),
    }


def make_posterior(analysis: Analysis) -> dict[str, Any] | None:
    """Show the posterior of k and beta, where there is one."""
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
        "at β = 0 it does not depend on them at all. Neither is chosen: predictions are averaged "
        "over both, weighted by this posterior.",
        "k": Markup(k_figure),
        "k_caption": f"Most probable: k = {mode} "
        f"(probability {clf.k_probabilities_.max():.2f}); 95\xa0% credible interval {ends[0]}–"
        f"{ends[1]}; prior range 1–{clf.k_values_[-1]:,}.",
        "beta": Markup(beta_figure),
        "beta_caption": f"Mean {clf.beta_mean_:.3f}, standard deviation {clf.beta_sd_:.3f}; "
        f"95\xa0% credible interval {low:.2f}–{high:.2f}; prior range 0–{clf.beta_max_:.3g}.",
    }


def describe_columns(analysis: Analysis) -> list[dict[str, Any]]:
    """Tell what each column holds and what became of it."""
    plan, frame = analysis.plan, analysis.frame
    steps = getattr(analysis.model.pipeline[0], "named_transformers_", {})
    gower = getattr(analysis.classifier, "metric", None) == "gower"
    use = "divided by its range (Gower)" if gower else "as it is"
    if analysis.is_pooled:
        use = "rank-transformed or whitened, depending on the member"
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
            "Class probabilities from neighbours in several metrics, each calibrated by a "
            "regression and averaged over the number of neighbours k, from an additive logistic "
            "regression and from boosted trees are multiplied with exponents that maximise the "
            "leave-one-out log score (PooledNeighborsClassifier).",
            "For leave-one-out probabilities, whatever is fitted to the labels is fitted without "
            "the row's fold.",
            *tell_search(analysis),
            *([] if analysis.warnings else ["No problems were detected."]),
        ]
    clf, report = analysis.classifier, analysis.classifier.diagnostics_
    sentences = [
        _LIKELIHOODS[clf.likelihood],
        f"The posterior of (β, k) was computed by {report['inference']}"
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
        sentences.append("No problems were detected.")
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


def _score_row(
    name: str, basis: str, found: Scores, own: bool = False, error: Scores | None = None
) -> dict[str, Any]:
    def show(value: float, spread: float | None) -> str:
        if not np.isfinite(value):
            return "" if np.isnan(value) else "∞"
        return f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")

    spread = (None,) * len(found) if error is None else error
    wrong = percent(found.error, 1)
    return {
        "name": name,
        "basis": basis,
        "own": own,
        "n": f"{found.n:,}",
        "error": wrong if error is None else f"{wrong} ± {100 * error.error:.1f}",
        "log_loss": show(found.log_loss, spread[2]),
        "brier": show(found.brier, spread[3]),
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
