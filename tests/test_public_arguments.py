"""Every public function given arguments out of range: a ValueError in one line, or a right answer.

The walk goes through ``__all__`` of each folder and through the public methods of ``OBJECTS``.
Required arguments take the valid values in ``GOOD`` and ``OF_ONE``; then one argument after another
is replaced by the values that ``BAD`` has for its name. A public name with an argument that is in
none of these tables fails the test: add it.
"""

import inspect
from importlib import import_module, util

import numpy as np
import pytest
from sklearn.base import clone

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    ColumnSelector,
    PooledNeighborsClassifier,
)
from bayesknn._utils.checks import show
from bayesknn._utils.random import spawn_keys
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood, path_table
from bayesknn.model import ArrayPrior, BoltzmannModel, FunctionPrior, UniformPrior
from bayesknn.posterior import grid_posterior
from bayesknn.predictive import PosteriorNodes, Predictive

N, K = 30, 5
FOLDERS = ("graph", "model", "labels", "likelihood", "log_z", "posterior", "predictive", "pooled")
if util.find_spec("bayesknn.sureness"):
    FOLDERS += ("sureness",)
# Values that functions return, a protocol and tables: nobody calls these with arguments of a user.
RECORDS = {
    "graph.Graph", "graph.Incidence", "graph.NeighborQuery", "model.EliminationPlan", "model.Prior",
    "labels.SampleInfo", "likelihood.LIKELIHOODS", "posterior.Diagnostics", "predictive.Summary",
    "CoalescenceError", "MixingWarning", "PhaseTransitionWarning", "__version__",
}  # fmt: skip
SKIPPED = {
    # Documented as unchecked: searches call them in their inner loops.
    "PseudoLikelihood.differentiate", "PseudoLikelihood.find_peak",
    # Called by the estimators, with what they have made.
    "Predictive.fit_calibrator", "Predictive.using",
    # Called by likelihoods and predictions, with functions of theirs.
    "NeighborGraph.map_counts",
    # Takes the prior of the fit and another, both made by as_prior.
    "GridPosterior.reweight",
    # Damaged and missing files have tests of their own, in tests/log_z and tests/posterior.
    "PathTable.load", "PathTable.save", "posterior.load_posterior", "posterior.save_posterior",
}  # fmt: skip
# Arguments that have no value out of range, or whose values are checked where they come from.
ANY = {"n_jobs", "verbose", "advance", "info", "function", "metric_params", "search_params"}
ANY |= {"evidence", "exact", "posterior", "path", "tree", "attrs", "predictive", "nodes"}
ANY |= {"k_probabilities", "k_probabilities_error", "warnings", "others", "left_out"}
ANY |= {
    "likelihood",
    "clf",
    "return_info",
    "may_fix",
    "log_evidence",
    "log_evidence_error",
    "index",
}


def flat(beta, k):
    """Return a density that does not depend on beta and k."""
    return 1.0 + 0 * beta


X = np.random.default_rng(0).normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)
GRAPH = NeighborGraph.from_points(X, K)
MODEL = BoltzmannModel(GRAPH, 2)
FIXED = MODEL.fix(np.where(np.arange(N) < 5, Y, -1))
PSEUDO = PseudoLikelihood(GRAPH, Y)
COHERENT = CoherentLikelihood(GRAPH, Y)
TABLE = path_table(GRAPH, 2, k_max=2, random_state=0)
GRID = grid_posterior(PSEUDO, beta_max=4.0)
NODES = PosteriorNodes.from_grid(GRID)
PREDICTIVE = Predictive(MODEL, Y, NODES)
QUERY = GRAPH.query(X[:3])
PSEUDO_CLF = BayesianKNeighborsClassifier("pseudo", max_neighbors=K, beta_max=4.0, random_state=0)
CLF = PSEUDO_CLF.fit(X, Y)
COHERENT_CLF = clone(PSEUDO_CLF).set_params(likelihood="coherent", max_neighbors=2).fit(X, Y)
CLASSICAL = ClassicalKNeighborsClassifier(max_neighbors=K).fit(X, Y)
POOL = PooledNeighborsClassifier(("evidence",), n_folds=3, random_state=0).fit(X, Y)
SELECTOR = ColumnSelector(max_columns=1, random_state=0).fit(X, Y)

COUNTS = [0, -1, 2.5, "three", None]
BAD = {
    "k": [K + 1, 0, -1, 2.5, "2"],
    "k_values": [[K + 1], [0], [], ["2"], K + 1],
    "k_max": [N, 0, -1, 2.5, "three"],
    "n_classes": [1, 0, -1, 2.5, "two"],
    "n_points": COUNTS,
    "n_neighbors": COUNTS,
    "beta": [-1.0, np.nan, np.inf, "strong", [1.0, "strong"]],
    "betas": [[-1.0], [np.nan], ["strong"]],
    "beta_max": [0.0, -1.0, np.nan, "large"],
    "class_weight": [[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0, 1.0], ["a", "b"], [np.nan, 1.0]],
    "class_sizes": [[-1, 2], [], ["a"], [1.5, 2]],
    "class_prior": [[-0.5, 1.5], [0.5, 0.25, 0.25], [0.5, 0.4], ["a", "b"]],
    "labels": [Y[:-1], Y + 1, Y - 1, Y + 0.5, ["a"] * N, []],
    "initial": [Y[:-1], Y + 1, Y - 1, ["a"] * N, []],
    "fixed": [Y[:-1], Y + 1, Y - 2, ["a"] * N],
    "graph": [FIXED, "graph", None, X],
    "model": [FIXED, "model", None, GRAPH],
    "prior": [
        UniformPrior(K + 1, 4.0), ArrayPrior(np.ones(K + 1), 4.0), np.ones(K + 1), -np.ones(K),
        np.zeros(K), "uniform", FunctionPrior(flat, K + 1, 4.0),
    ],
    "priors": [{"long": "uniform"}],
    "n_draws": COUNTS, "n_chains": COUNTS, "n_first_stage": [-1, 2.5, "three"],
    "n_warmup": [-1, 2.5, "three"], "n_plug_ins": [-1, 2.5, "three"],
    "n_refresh": [-1, 2.5, "three"], "n_sweeps": [0, -1, 2.5, "three"],
    "thin": [0, -1, 2.5, "three"], "r": [0, -1, 2.5, "three"], "tau": [0.0, -1.0, "wide", np.nan],
    "plug_in": [(1.0, K + 1), (-1.0, 2), (1.0, 2.5), ("a", 2), (1.0,), "ab"],
    "recorded_k": [K + 1, 0, "2"], "max_sweeps": [0, -1, 2**31 + 1, "many"],
    "key": [-1, 2**64, "key", 1.5, None],
    "threshold": [0.0, 1.0, -1.0, "high", np.nan], "tolerance": [0.0, -1.0, "fine", np.nan],
    "max_bytes": [0, -1, "many"], "level": [0.0, 1.0, 2, "high", np.nan],
    "random_state": [-1, "seed", 1.5], "n_repeats": [1, 0, "three"],
    "method": ["best", 3, None], "scheme": ["best", 3], "search": ["best", 3],
    "label_sampler": ["best", 3], "direction": ["up", 3, None], "metric": ["best", 3],
    "of": ["values", 3], "prevalence": ["today", 3],
    "neighbors": [[[1, 2, N]], [[-1, 0, 1]], [0, 1], [["a", "b", "c"]], np.empty((0, 3), int)],
    "distances": [[[-1.0]], np.ones((K + 1, N)), [["a"]]],
    "tied_beyond": [np.zeros(N - 1, bool)],
    "rows": [[0, N], [-1, 0], ["a", "b"], [0.5, 1]], "chunk_size": [0, -1, "three"],
    "X": [np.empty((0, 2)), X[0], X[:, :1], "text", [["a", "b"]], [[np.nan, 1.0]]],
    "background": [np.empty((0, 2)), X[0], X[:, :1]],
    "y": [Y[:-1], np.zeros(N, int), Y + 0.5, np.full(N, np.nan), [], None],
    "n_background": COUNTS, "columns": [np.zeros((N - 1, 2))],
    "uncertain": [0, 1], "unfamiliar": [-0.1, 1.1, "a"],
    "loss": [[[1.0]], [[np.nan, 1], [1, 0]], [["a", "b"], ["c", "d"]], np.empty((0, 2))],
    "actions": [["a"], [0, 0]], "probabilities": [[[0.5, 0.6]], [0.5], [["a", "b"]], [[-1, 2]]],
    "intervals": [[[0.1, 0.2]], [[["a", "b"]] * 2], 0.5],
    "weight": [[-1.0], [0.2], ["a"], [0.5, 0.5]],
    "field": [np.zeros((3, 3)), np.full((3, 2), np.nan), [["a", "b"]] * 3],
    "values": [[-1.0, 1.0], [np.nan], [], ["a"], [[1.0], [1.0]]],
    "counts": [["a"], 3, []], "classes": [[0], [0, 1, 2]], "draws": [{}, {"beta": X}],
    "fits": [{}], "new": [UniformPrior(K + 1, 4.0)], "table": ["table", GRID],
    "weights": [np.ones((1, 2)), [["a"]]], "replicates": [np.ones((2, 2))],
    "cells": [np.ones((1, 1))],
    **{key: [np.ones((1, 2)), [["a"]]] for key in ("log_normalizers", "means", "slopes")},
    **{key: [np.ones(9), []] for key in ("closure", "is_exact", "fingerprint")},
    "members": [("best",), (), 3], "categorical_features": [[9], ["a"], 3.5],
    "sample_weight": [-np.ones(N), np.ones(N - 1), ["a"] * N, np.full(N, np.nan)],
    "groups": [np.zeros(N), np.arange(N - 1), [None] * N, "one", 3],
    "calibrate": ["yes", 2], "class_prior_as": ["odds", 3], "inference": ["best", 3],
    "max_neighbors": [N, 0, -1, 2.5, "three"], "n_folds": [1, 0, "three"], "by": ["best", 3],
    "max_columns": [0, -1, "three"],
}  # fmt: skip


def fitting(kind, **valid):
    """Return a function of all parameters of an estimator, of X and of y, that fits it."""

    def fit(X=X, y=Y, sample_weight=None, groups=None, **params):
        given = {"sample_weight": sample_weight, "groups": groups}
        given = {name: value for name, value in given.items() if value is not None}
        return kind(**(valid | params)).fit(X, y, **given)

    names = [*inspect.signature(kind).parameters, *inspect.signature(kind.fit).parameters]
    names = dict.fromkeys(name for name in names if name != "self")
    keyword = inspect.Parameter.KEYWORD_ONLY
    fit.__signature__ = inspect.Signature([inspect.Parameter(name, keyword) for name in names])
    return fit


def methods(*objects):
    """Return the public methods of bayesknn that objects have and that take arguments, by name."""
    found = {}
    for value in objects:
        for name, method in inspect.getmembers(value, inspect.ismethod):
            ours = method.__func__.__module__.startswith("bayesknn")
            if ours and not name.startswith("_") and inspect.signature(method).parameters:
                kind = value if inspect.isclass(value) else type(value)
                found[f"{kind.__name__}.{name}"] = method
    return found


# Valid values of arguments, by name.
GOOD = {
    "graph": GRAPH, "model": MODEL, "beta": 1.0, "betas": [1.0], "k": 2, "n_classes": 2,
    "labels": Y, "key": spawn_keys(0, 1)[0], "X": X[:3], "y": Y, "neighbors": GRAPH.neighbors,
    "distances": GRAPH.distances, "class_sizes": [3, 4], "prior": UniformPrior(K, 4.0),
    "new": UniformPrior(3, 4.0), "nodes": NODES, "posterior": GRID, "predictive": PREDICTIVE,
    "n_draws": 20, "n_warmup": 10, "n_chains": 2, "clf": CLF, "n_neighbors": 2,
    "rows": [0, 3, 4, 9],
    "probabilities": np.full((N, 2), 0.5), "weight": None, "k_max": 2, "n_points": N,
    "random_state": 0, "verbose": 0, "level": 0.9,
}  # fmt: skip
# Valid values of one function, where they differ or have no other name.
SAVED = {name: getattr(TABLE, name) for name in inspect.signature(type(TABLE)).parameters}
OF_ONE = {
    "model.ArrayPrior": {"values": np.ones(K), "beta_max": 4.0},
    "model.FunctionPrior": {"function": flat, "beta_max": 4.0},
    "model.UniformPrior": {"beta_max": 4.0},
    "model.as_prior": {"k_max": K},
    "model.class_probabilities": {"counts": [1, 2]},
    "model.class_weights": {"class_prior": [0.5, 0.5], "classes": [0, 1]},
    "likelihood.PathTable": SAVED,
    "log_z.PathTable": SAVED,
    "posterior.GridPosterior": {
        "k_values": np.array([2]), "betas": np.array([[1.0, 1.5]]),
        "weights": np.array([[0.5, 0.5]]), "replicates": np.empty((0, 1, 2)), "k_max": K,
    },
    "posterior.auxiliary": {"likelihood": COHERENT, "n_first_stage": 8, "thin": 1},
    "posterior.exchange": {"likelihood": COHERENT, "thin": 1},
    "posterior.grid_posterior": {"likelihood": PSEUDO},
    "posterior.metropolis": {"likelihood": PSEUDO},
    "posterior.make_tree": {"draws": GRID.draw(1, 4, 0), "n_warmup": 0},
    "posterior.diagnose": {"tree": GRID.to_tree(2, 20, random_state=0)},
    "GridPosterior.log_density": {"beta": [1.0, 1.0], "k": [2, 3]},
    "predictive.PosteriorNodes": {"k": [2], "beta": [1.0], "weight": [1.0]},
    "predictive.find_zones": {"intervals": [[[0.1, 0.2], [0.3, 0.9]]]},
    "check_intervals": {"X": X, "n_repeats": 2},
    "compare_evidence": {"fits": {"one": CLF}},
    "likelihood.path_table": {"prior": None, "random_state": 0},
    "log_z.path_table": {"prior": None, "random_state": 0},
    "GridPosterior.mean": {"values": np.ones(GRID.betas.shape)},
    "NeighborGraph.from_points": {"X": X},
}  # fmt: skip
OF_FIT = {
    "X": X, "likelihood": "pseudo", "max_neighbors": K, "beta_max": 4.0, "members": ("evidence",),
    "n_folds": 3, "prior": None, "n_neighbors": "loo", "max_columns": 1,
}  # fmt: skip
OBJECTS = (
    NeighborGraph, PosteriorNodes, GRAPH, MODEL, PSEUDO, TABLE, GRID, PREDICTIVE, QUERY, CLF,
    CLASSICAL, POOL, SELECTOR,
)  # fmt: skip


ESTIMATORS = [kind.__name__ for kind in map(type, (CLF, CLASSICAL, POOL))]
PREDICTIONS = [name.split(".")[1] for name in methods(POOL) if ".predict" in name]
# Values that have a right answer: by function and argument, and which of the values of BAD.
ACCEPTED = {
    # Tables of one column; the pool takes missing values; columns are selected whatever they hold.
    **{(f"{name}.fit", "X"): {2} for name in (*ESTIMATORS, "ColumnSelector")},
    **{(f"PooledNeighborsClassifier.{name}", "X"): {5} for name in PREDICTIONS},
    ("NeighborGraph.from_points", "X"): {2},
    ("ColumnSelector.transform", "X"): {4, 5},
    ("ColumnSelector.predict_proba", "X"): {5},
    # No two training points are the same, so that no new point has copies.
    ("Predictive.count_copies", "X"): {0, 1, 2, 3, 4, 5},
    # No limit is known: a prior, counts and draws of any k; the graph of both has more points.
    **{(f"model.{name}", "k_max"): {0} for name in ("UniformPrior", "FunctionPrior", "as_prior")},
    ("model.class_probabilities", "k"): {0},
    ("PosteriorNodes.from_draws", "k"): {0},
    ("NeighborGraph.join", "k_max"): {0},
    ("posterior.GridPosterior", "k_max"): {0},
    ("model.class_weights", "labels"): {0},
    ("BoltzmannModel.fix", "labels"): {2},  # -1 is a free point
    ("labels.sample_labels", "graph"): {0},  # fixed labels are held
    # Labels that were observed may be anything.
    ("posterior.make_tree", "labels"): {0, 1, 2, 3, 4, 5},
    ("GridPosterior.to_tree", "labels"): {0, 1, 2, 3, 4, 5},
    # Nothing random is drawn.
    ("likelihood.log_normalizer", "random_state"): {0, 1, 2},
    ("posterior.grid_posterior", "random_state"): {0, 1, 2},
    ("BayesianKNeighborsClassifier.predict_counts", "random_state"): {0, 1, 2},
    # The error is in the column ``note``.
    ("sensitivity", "priors"): {0},
    ("likelihood.PathTable", "n_sweeps"): {0},
    ("log_z.PathTable", "n_sweeps"): {0},
    # The density is zero there.
    ("GridPosterior.log_density", "k"): {0, 1, 2, 3},
}


def find_calls():
    """Return what can be called, by name."""
    calls = methods(*OBJECTS)
    calls["BayesianKNeighborsClassifier.sample_predictive"] = COHERENT_CLF.sample_predictive
    for folder in (*FOLDERS, ""):
        module = import_module(f"bayesknn.{folder}".rstrip("."))
        for name in getattr(module, "__all__", ()):
            full = f"{folder}.{name}".lstrip(".")
            value = getattr(module, name)
            if full in RECORDS:
                continue
            is_estimator = hasattr(value, "fit")
            calls[f"{name}.fit" if is_estimator else full] = (
                fitting(value) if is_estimator else value
            )
    return calls


CALLS = {name: call for name, call in find_calls().items() if name not in SKIPPED}


def arguments(name):
    """Return the names of the arguments of a call, and valid values of those that need one."""
    signature = inspect.signature(CALLS[name]).parameters
    own = OF_FIT if name.endswith(".fit") else OF_ONE.get(name, {})
    valid = {each: value for each, value in (GOOD | own).items() if each in signature}
    return list(signature), valid


def find_faults(name):
    """Return the arguments out of range that a function neither rejects nor answers rightly."""
    names, valid = arguments(name)
    wrong = [f"{each} has no values out of range" for each in names if each not in {*BAD, *ANY}]
    run(CALLS[name], valid)
    for each in [each for each in names if each in BAD]:
        for at, value in enumerate(BAD[each]):
            try:
                run(CALLS[name], valid | {each: value})
            except ValueError as error:
                if "\n" in str(error):
                    wrong.append(f"{each}={show(value)}: {error}")
            except Exception as error:
                wrong.append(f"{each}={show(value)}: {type(error).__name__}: {error}")
            else:
                if at not in ACCEPTED.get((name, each), ()):
                    wrong.append(f"{each}={show(value)} is accepted")
    return wrong


@pytest.mark.filterwarnings("ignore::bayesknn.MixingWarning")
@pytest.mark.parametrize("name", sorted(CALLS))
def test_arguments_out_of_range(name):
    wrong = find_faults(name)
    assert not wrong, "\n".join(wrong)


def run(call, arguments):
    """Call a function; a generator is run to its end."""
    result = call(**arguments)
    return list(result) if inspect.isgenerator(result) else result
