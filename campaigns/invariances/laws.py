"""Invariances of a fitted classifier under ways of calling, permutations and changes of units."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone

from campaigns.invariances.cases import Case
from campaigns.invariances.compared import (
    AFTER_REWEIGHT,
    BITS,
    NEW_ROWS,
    ROUNDING,
    WEIGHTS,
    Compared,
    compare,
    find_difference,
)


def fit(
    case: Case,
    frame: Any = None,
    y: Any = None,
    weights: Any = None,
    groups: Any = None,
    **changes: Any,
) -> Any:
    """Return the classifier of a case, fitted to the given rows; by default to those of the case.

    ``changes`` are parameters of the classifier to set first.
    """
    clf = clone(case.classifier).set_params(**changes)
    weights = case.weights if weights is None else weights
    given = {} if weights is None else {"sample_weight": weights}
    if groups is not None:
        given["groups"] = groups
    frame = case.frame if frame is None else frame
    return clf.fit(frame, case.y if y is None else y, **given)


def describe(clf: Any, new: Any) -> dict[str, Any]:
    """Return all results of a fitted classifier for its training rows and new rows, by name."""
    if not hasattr(clf, "predict_summary"):
        return {"probabilities": clf.predict_proba(new), "leave-one-out errors": clf.loo_errors_}
    summary = clf.predict_summary(new)
    return {
        "probabilities": summary.probabilities,
        "intervals": summary.intervals,
        "typicality": summary.typicality,
        "leave-one-out probabilities": clf.loo_proba_,
        "leave-one-out intervals": clf.loo_interval(),
        "leave-one-out log score": clf.loo_log_score_,
        "warnings": clf.diagnostics_["warnings"],
    }


def keep(answers: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the results except those with the given names."""
    return {name: each for name, each in answers.items() if name not in names}


def is_coherent(case: Case) -> bool:
    """Return whether the fit runs Markov chains, whose draws depend on the order of the rows."""
    return case.options.get("likelihood") == "coherent"


# Way of calling ------------------------------------------------------------------------------


def way_of_calling(case: Case) -> Iterator[Compared]:
    """Yield differences between a fit and the same fit called in other ways.

    The ways are repeated prediction, a pickled or cloned classifier, and arrays, lists, polars
    frames or Dask collections as input.
    """
    clf = fit(case)
    answers = describe(clf, case.new)
    yield from compare(answers, describe(clf, case.new), BITS, "again")
    yield from compare(answers, describe(pickle.loads(pickle.dumps(clf)), case.new), BITS, "pickle")
    yield from compare(answers, describe(fit(case), case.new), BITS, "clone")
    # Arrays and polars frames lose the order of the categories.
    if not any(isinstance(each, pandas.CategoricalDtype) for each in case.frame.dtypes):
        for name, convert in _CONVERSIONS.items():
            other = describe(fit(case, convert(case.frame)), convert(case.new))
            # Warnings are not compared, because they contain the names of columns.
            yield from compare(answers, keep(other, "warnings"), ROUNDING, name)
    if all(each.kind == "f" for each in case.frame.dtypes):
        yield from _by_dask(case, answers)


def _as_array(frame: pandas.DataFrame) -> np.ndarray:
    return (
        frame.to_numpy()
        if all(each.kind == "f" for each in frame.dtypes)
        else frame.to_numpy(dtype=object)
    )


def _as_polars(frame: pandas.DataFrame) -> Any:
    import polars

    return polars.from_pandas(frame)


_CONVERSIONS: dict[str, Callable] = {
    "array": _as_array,
    "lists": lambda frame: _as_array(frame).tolist(),
    "polars": _as_polars,
}


def _by_dask(case: Case, answers: dict[str, Any]) -> Iterator[Compared]:
    """Yield differences of predictions and fits on Dask collections from those in memory."""
    import dask
    import dask.array

    from bayesknn.distributed import DistributedNeighborsClassifier

    n_blocks = 1 + case.seed % 5
    X, new = case.frame.to_numpy(), case.new.to_numpy()
    local, options = case.classifier, case.options
    with dask.config.set(scheduler="synchronous"):
        blocks = dask.array.from_array(new, chunks=(-(-len(new) // n_blocks), -1))
        p = fit(case, X).predict_proba(blocks).compute()
        yield from compare(answers, {"probabilities": p}, ROUNDING, "Dask blocks")
        # The classifier for Dask collections supports only these options.
        if options["kind"] != "bayesian" or options["metric"] != "euclidean":
            return
        if options["likelihood"] == "coherent":
            return
        parts = dask.array.from_array(X, chunks=(-(-len(X) // n_blocks), -1))
        y = dask.array.from_array(np.asarray(case.y), chunks=parts.chunks[0])
        params = local.get_params()
        given = {name: params[name] for name in DistributedNeighborsClassifier().get_params()}
        clf = DistributedNeighborsClassifier(**given).fit(parts, y)
        other = {
            "probabilities": clf.predict_proba(blocks).compute(),
            "intervals": clf.predict_interval(blocks).compute(),
            "typicality": clf.predict_typicality(blocks).compute(),
            "leave-one-out probabilities": clf.loo_proba_.compute(),
            "leave-one-out intervals": clf.loo_interval(),
            "leave-one-out log score": clf.loo_log_score_,
        }
        yield from compare(answers, other, ROUNDING, "Dask: classifier")
        # The other methods of the classifier, in memory and on Dask.
        home = fit(case, X)
        for each, rows in ((home, new), (clf, blocks)):
            other = {
                "log probabilities": np.asarray(each.predict_log_proba(rows)),
                "credible intervals": np.asarray(each.predict_interval(rows, of="parameters")),
                "expected loss": each.predict_decision(rows)[1],
                "counts": each.predict_counts(rows),
                "contributions": each.predict_contributions(new[:2], X, n_background=3),
            }
            if each is home:
                expected = other
        yield from compare(expected, other, ROUNDING, "Dask: methods")
        loaded = pickle.loads(pickle.dumps(clf))
        influence = home.predict_influence(new)[1]
        found = {"influence": loaded.predict_influence(new)[1]}
        yield from compare({"influence": influence}, found, ROUNDING, "Dask: gathered")


def command(case: Case) -> Iterator[Compared]:
    """Yield differences between fits to a CSV file and to the same table in other forms.

    The forms are Excel and Parquet files, table models fitted in Python, and the command line.
    """
    from bayesknn.report import read_table
    from bayesknn.report.analysis import analyse

    days = pandas.to_timedelta(case.rng.integers(0, 99, len(case.y)), "D")
    table = case.frame.assign(target=case.y, day=pandas.Timestamp("2024-01-31") + days)
    new = case.new.assign(day=table["day"][: len(case.new)])
    settings = case.classifier.get_params()
    settings["class_prior"] = settings["class_prior"] or {}
    model, results = settings.pop("likelihood", "pooled"), {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for form in ("csv", "xlsx", "parquet"):
            _write(table, Path(f"train.{form}"))
            _write(new, Path(f"new.{form}"))
            train = read_table(f"train.{form}")
            test = read_table(f"new.{form}")
            given = {"model": model, "settings": settings, "impute": model != "pooled"}
            results[form] = analyse(train, "target", test, compared=False, **given)
        csv = _describe_analysis(results["csv"])
        for form in ("xlsx", "parquet"):
            yield from compare(csv, _describe_analysis(results[form]), ROUNDING, form)
        yield from _by_table_model(case, table, results["csv"])
        # The command writes a report, which takes most of the time, so it runs for a third of the
        # cases.
        if case.seed % 3 == 0:
            yield from _by_command(case, model, settings, results["csv"])


def _by_table_model(case: Case, table: pandas.DataFrame, analysis: Any) -> Iterator[Compared]:
    """Yield differences of table models, fitted to a typed frame or to text, from an analysis."""
    from bayesknn.report import TableModel, TablePreparer, read_table

    answers = _describe_predictions(analysis)
    preparer = TablePreparer(impute=case.options["kind"] != "pooled")
    new = pandas.read_parquet("new.parquet")
    ways = {
        "frame": (table.drop(columns="target"), table["target"], new),
        "cells": (*read_table("train.csv").split("target")[:2], read_table("new.csv")),
    }
    for name, (X, y, rows) in ways.items():
        model = TableModel(preparer, analysis.model.classifier).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            summary = model.predict_summary(rows)
        got = {
            "probabilities": summary.probabilities,
            "intervals": summary.intervals,
            "leave-one-out probabilities": model.classifier_.loo_proba_,
        }
        yield from compare(answers, got, ROUNDING, f"TableModel: {name}")


def _describe_predictions(analysis: Any) -> dict[str, Any]:
    names = ("probabilities", "intervals", "leave-one-out probabilities")
    answers = _describe_analysis(analysis)
    return {name: answers[name] for name in names}


def _by_command(case: Case, model: str, settings: dict, analysis: Any) -> Iterator[Compared]:
    """Yield differences between files of ``bayesknn fit``, its saved model and an analysis."""
    from click.testing import CliRunner

    from bayesknn.cli import main
    from bayesknn.model_file.predictions import predict_new, write_csv
    from bayesknn.report import load_model, read_table

    words = ["fit", "train.csv", "--target", "target", "--test", "new.csv", "--out", "out"]
    words += ["--no-compare", "--model", model, "--seed", "0", "--search", settings["search"]]
    for name, p in settings["class_prior"].items():
        words += ["--class-prior", f"{name}={float(p)!r}"]
    if model != "pooled":
        words += ["--impute", "--metric", settings["metric"], "--draws", "50"]
        words += ["--max-neighbors", str(settings["max_neighbors"])]
        words += ["--beta-max", str(settings["beta_max"])]
    ended = CliRunner().invoke(main, words)
    yield Compared(f"exit code: {ended.stderr[-300:]}", ended.exit_code, 0)
    written = Path("out/predictions.csv").read_text(encoding="utf-8")
    # Some settings of the classifier have no option of the command.
    options = case.options
    has_all = options.get("members", "all") == "all" and options.get("prior") is None
    if has_all and not options.get("calibrate") and options.get("class_prior_as") != "weights":
        yield Compared("command", find_difference(write_csv(analysis.test), written), 0)
    loaded = load_model(Path("out"))
    answers = {"loaded": write_csv(predict_new(loaded, read_table("new.csv"), 0.95))}
    answers["predict"] = CliRunner().invoke(main, ["predict", "out", "new.xlsx"]).stdout
    if case.seed % 51 == 0:
        run = [sys.executable, "-m", "bayesknn", "predict", "out", "new.parquet"]
        ended = subprocess.run(run, capture_output=True, text=True, check=True)
        answers["another process"] = ended.stdout
    for way, text in answers.items():
        yield Compared(way, find_difference(text, written), 0)


def _write(frame: pandas.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_parquet(path)


def _describe_analysis(analysis: Any) -> dict[str, Any]:
    return {
        "probabilities": analysis.test.probabilities,
        "intervals": analysis.test.intervals,
        "zones": analysis.test.zones,
        "leave-one-out probabilities": analysis.training.probabilities,
        "leave-one-out intervals": analysis.training.intervals,
        "warnings": analysis.warnings,
        "messages": analysis.messages,
    }


# Defaults passed explicitly, weights ----------------------------------------------------------


def own_prior(case: Case) -> Iterator[Compared]:
    """Yield differences between fits with a default and with its value passed explicitly.

    These values are the prior of the fit, the class frequencies of the training rows, weights of 1
    and groups of one row.
    """
    kind, alone = case.options["kind"], [f"row {row}" for row in range(len(case.y))]
    if kind == "pooled":
        plain = fit(case, class_prior=None)
        answers = describe(plain, case.new)
        other = describe(fit(case, class_prior=None, groups=alone), case.new)
        yield from compare(answers, other, BITS, "groups of one row")
        other = fit(case, class_prior=case.frequencies)
        yield from compare(answers, describe(other, case.new), ROUNDING, "class_prior")
        if case.weights is None:
            other = describe(fit(case, weights=np.ones(len(case.y)), class_prior=None), case.new)
            yield from compare(answers, other, ROUNDING, "sample_weight")
        return
    clf = fit(case)
    again = clf.reweight(clf.prior_)
    yield from compare(
        describe(clf, case.new), describe(again, case.new), AFTER_REWEIGHT, "reweight"
    )
    yield from compare(_posterior(clf), _posterior(again), AFTER_REWEIGHT, "reweight")
    plain = describe(fit(case, class_prior=None), case.new)
    other = describe(fit(case, class_prior=None, groups=alone), case.new)
    yield from compare(plain, other, BITS, "groups of one row")
    for way in ("offset", "weights"):
        other = fit(case, class_prior=case.frequencies, class_prior_as=way)
        yield from compare(plain, describe(other, case.new), ROUNDING, f"class_prior as {way}")


def _posterior(clf: Any) -> dict[str, Any]:
    return {
        "P(k)": clf.k_probabilities_,
        "moments of beta": [clf.beta_mean_, clf.beta_sd_],
        "log evidence": clf.log_evidence_,
        "diagnostics": json.dumps(
            {name: clf.diagnostics_[name] for name in ("misfit_column", "boundary_ties", "search")}
        ),
    }


def scale_of_weights(case: Case) -> Iterator[Compared]:
    """Yield differences between fits with sample weights and with a multiple of these weights."""
    rng = case.rng
    weights = rng.uniform(0.5, 2.0, len(case.y)) if case.weights is None else case.weights
    answers = describe(fit(case, weights=weights), case.new)
    factor = float(rng.choice([1e-9, 0.3, 7.0, 1e12]))
    other = describe(fit(case, weights=factor * weights), case.new)
    yield from compare(answers, other, WEIGHTS, "times a constant")


# Order ---------------------------------------------------------------------------------------


def order_of_new_rows(case: Case) -> Iterator[Compared]:
    """Yield differences when new rows are predicted in another order, repeated or one at a time."""
    clf = fit(case)
    names = ("probabilities", "intervals", "typicality")

    def predict(rows: Any) -> dict[str, Any]:
        answers = describe(clf, case.new.iloc[rows].reset_index(drop=True))
        return {name: answers[name] for name in names if name in answers}

    answers = predict(range(len(case.new)))
    shuffled = case.rng.permutation(len(case.new))
    for change, rows in {"permuted": shuffled, "doubled": np.tile(shuffled, 2)}.items():
        wanted = {name: each[rows] for name, each in answers.items()}
        yield from compare(wanted, predict(rows), NEW_ROWS, change)
    for i in range(3):
        wanted = {name: each[[i]] for name, each in answers.items()}
        yield from compare(wanted, predict([i]), NEW_ROWS, "one at a time")


def order(case: Case) -> Iterator[Compared]:
    """Yield differences when rows or columns are permuted, or classes or categories renamed."""
    clf = fit(case)
    answers, rng = describe(clf, case.new), case.rng
    rows = rng.permutation(len(case.y))
    weights = None if case.weights is None else case.weights[rows]
    other = fit(case, case.frame.iloc[rows].reset_index(drop=True), case.y[rows], weights)
    back = {"leave-one-out probabilities", "leave-one-out intervals"}
    got = describe(other, case.new)
    got = {name: each[np.argsort(rows)] if name in back else each for name, each in got.items()}
    yield from _compare_order(case, clf, other, answers, got, "rows permuted")
    columns = rng.permutation(case.frame.columns)
    other = fit(case, case.frame[columns])
    got = describe(other, case.new[columns])
    yield from _compare_order(case, clf, other, answers, got, "columns permuted")
    # The ensemble sorts the rows by their values. The names of classes or categories break a tie
    # between rows that are equal in all columns, or in all numeric columns. So renaming is compared
    # only if there are no such ties.
    has_order = case.options["kind"] == "pooled"
    distinct = case.frame.drop_duplicates()
    if not has_order or len(case.frame.assign(y=case.y).drop_duplicates()) == len(distinct):
        yield from _rename_classes(case, clf, answers)
    texts = [name for name in case.frame if case.frame[name].dtype.kind in "OT"]
    numbers = [name for name in case.frame if case.frame[name].dtype.kind == "f"]
    is_untied = bool(numbers) and not distinct.duplicated(numbers).any()
    if texts and (not has_order or is_untied):
        renamed = {name: {f"level {g}": f"renamed {9 - g}" for g in range(8)} for name in texts}
        other = fit(case, case.frame.replace(renamed))
        got = describe(other, case.new.replace(renamed))
        yield from _compare_order(case, clf, other, answers, got, "categories renamed")


def _rename_classes(case: Case, clf: Any, answers: dict[str, Any]) -> Iterator[Compared]:
    """Yield differences from a fit with new class names that sort in the opposite order."""
    classes = clf.classes_
    names = {name: f"renamed {9 - g}" for g, name in enumerate(classes.tolist())}
    changes = {}
    if getattr(case.classifier, "class_prior", None):
        given = case.classifier.class_prior
        changes["class_prior"] = {names[name]: p for name, p in given.items()}
    other = fit(case, y=np.array([names[name] for name in case.y.tolist()]), **changes)
    got = describe(other, case.new)
    got = {name: each[:, ::-1] if np.ndim(each) > 1 else each for name, each in got.items()}
    yield from _compare_order(case, clf, other, answers, got, "classes renamed")


def _compare_order(
    case: Case, first: Any, second: Any, a: dict[str, Any], b: dict[str, Any], change: str
) -> Iterator[Compared]:
    """Yield differences of two fits, in units of Monte Carlo errors if Markov chains are run."""
    is_simulated = is_coherent(case) or case.options.get("beta_max") == "auto"
    if not is_simulated:
        yield from compare(keep(a, "warnings"), b, ROUNDING, change)
    elif is_coherent(case) and case.options["beta_max"] != "auto":
        yield from _within_errors(first, second, change)


def _within_errors(first: Any, second: Any, change: str, allowed: float = 4.5) -> Any:
    """Yield the differences of E(beta) and P(k) in units of their Monte Carlo standard errors."""
    errors = np.hypot(first.diagnostics_["mcse"]["beta"], second.diagnostics_["mcse"]["beta"])
    gap = abs(first.beta_mean_ - second.beta_mean_)
    yield Compared(f"{change}: E(beta) in errors", gap / max(errors, 1e-6), allowed)
    errors = np.hypot(first.k_probabilities_error_, second.k_probabilities_error_)
    gap = np.abs(first.k_probabilities_ - second.k_probabilities_)
    yield Compared(
        f"{change}: P(k) in errors", float((gap / np.maximum(errors, 1e-4)).max()), allowed
    )


# Units, distances ----------------------------------------------------------------------------


def units(case: Case) -> Iterator[Compared]:
    """Yield differences when numeric columns are multiplied by positive factors and shifted."""
    answers, rng = describe(fit(case), case.new), case.rng
    frame, new = case.frame.copy(), case.new.copy()
    # Integer columns have equal differences. Only powers of two keep these exactly equal.
    factors = [0.25, 8.0] if any("whole" in name for name in frame) else [1e-3, 2.54, 1024.0]
    common = rng.choice(factors)
    # Gower and Mahalanobis distances and the ensemble rescale each column; all other metrics need
    # the same factor for all columns.
    each_column = case.options.get("metric") in (None, "gower", "mahalanobis")
    for name in frame:
        if frame[name].dtype.kind == "f":
            factor = rng.choice(factors) if each_column else common
            shift = 0.0 if "whole" in name else rng.choice([0.0, -7.5, 100.0]) * factor
            frame[name], new[name] = factor * frame[name] + shift, factor * new[name] + shift
    yield from compare(answers, describe(fit(case, frame), new), ROUNDING, "units")


def precomputed(case: Case) -> Iterator[Compared]:
    """Yield differences of fits to a distance matrix or a sparse graph from a fit to the points."""
    clf = fit(case)
    answers = keep(describe(clf, case.new), "intervals", "leave-one-out intervals", "warnings")
    metric = {"euclidean": "euclidean", "manhattan": "cityblock"}[case.options["metric"]]
    X, new = case.frame.to_numpy(), case.new.to_numpy()
    distances, to_new = cdist(X, X, metric), cdist(new, X, metric)
    changes: dict[str, Any] = {"metric": "precomputed"}
    if hasattr(case.classifier, "search"):
        changes["search"] = "auto"
    other = fit(case, distances, **changes)
    yield from compare(answers, describe(other, to_new), ROUNDING, "distances")
    if case.options["kind"] == "bayesian":
        yield from compare(
            _posterior_numbers(clf), _posterior_numbers(other), ROUNDING, "distances"
        )
        k = case.classifier.max_neighbors + 3
        near = np.argsort(distances, axis=1, kind="stable")[:, : k + 1]
        kept = np.take_along_axis(distances, near, axis=1)
        rows = np.repeat(np.arange(len(X)), near.shape[1])
        graph = csr_array((kept.ravel(), (rows, near.ravel())), shape=distances.shape)
        if case.options["rows"] == "distinct":
            sparse = fit(case, graph, **changes)
            yield from compare(
                _posterior_numbers(clf), _posterior_numbers(sparse), ROUNDING, "graph"
            )


def _posterior_numbers(clf: Any) -> dict[str, Any]:
    return {**keep(_posterior(clf), "diagnostics"), "leave-one-out probabilities": clf.loo_proba_}
