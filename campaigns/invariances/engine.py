"""Invariances of the engine: two algorithms for one number, a wider prior, rejected arguments."""

from __future__ import annotations

import atexit
import json
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from bayesknn.graph import NeighborGraph
from bayesknn.labels import sample_labels
from bayesknn.likelihood import (
    CoherentLikelihood,
    ExactLikelihood,
    PseudoLikelihood,
    log_normalizer,
    path_table,
)
from bayesknn.model import (
    BoltzmannModel,
    UniformPrior,
    expected_agreement_exact,
    log_normalizer_exact,
)
from bayesknn.posterior import auxiliary, diagnose, exchange, grid_posterior, metropolis
from campaigns import cases as fuzz_cases
from campaigns.fuzz import CaseRunner
from campaigns.invariances.cases import Case, cover
from campaigns.invariances.compared import Compared, find_difference
from campaigns.invariances.laws import fit

# Largest difference in standard errors. A normal variable exceeds 4.4 with probability 1e-5; the
# larger bound allows for standard errors that are themselves estimated from chains.
_ERRORS = 5.5


class Small(NamedTuple):
    """Options, points and labels of a small case.

    Attributes
    ----------
    options : dict of str to object
    points : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        Class indices, with at least two points in each class.
    weight : ndarray of shape (n_classes,) or None
        Class weights.
    seed : int
    """

    options: dict[str, Any]
    points: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    seed: int

    def make_model(self, k_max: int) -> BoltzmannModel:
        """Return the model of the graph up to ``k_max``."""
        graph = NeighborGraph.from_points(self.points, k_max)
        return BoltzmannModel(graph, self.options["n_classes"], self.weight)


@st.composite
def small_graphs(draw: st.DrawFn, options: dict[str, Any]) -> Small:
    """Draw labels, and points in the plane whose means differ between the classes."""
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(16, 30))
    rng, n_classes = np.random.default_rng(seed), options["n_classes"]
    y = rng.permutation(np.arange(n) % n_classes)
    points = rng.normal(size=(n, 2)) + draw(st.sampled_from([0.0, 0.7, 1.5])) * y[:, None]
    weight = rng.uniform(0.7, 1.4, n_classes) if options.get("weight") else None
    return Small(options, points, y, weight, seed)


ROUTES = cover(
    {
        "route": ("metropolis", "exchange", "auxiliary", "path", "exact", "log Z", "table",
                  "swendsen-wang", "gibbs", "perfect"),
        "n_classes": (2, 3),
        "weight": (False, True),
    }
)  # fmt: skip


def routes(case: Small) -> Iterator[Compared]:
    """Yield the difference between two algorithms for one number, in standard errors."""
    route, model, rng = case.options["route"], case.make_model(3), np.random.default_rng(case.seed)
    beta, k, prior = float(rng.uniform(0.2, 1.2)), int(rng.integers(1, 4)), UniformPrior(3, 2.5)
    if route in ("swendsen-wang", "gibbs", "perfect"):
        # Perfect draws of three classes need equal weights.
        if route == "perfect" and model.n_classes > 2:
            model = BoltzmannModel(model.graph, model.n_classes)
        drawn, info = sample_labels(
            model, beta, k, method=route, n_draws=2000, thin=5, n_warmup=200,
            random_state=case.seed, return_info=True,
        )  # fmt: skip
        totals = model.agreement(drawn, k)
        exact = expected_agreement_exact(model.graph, beta, k, model.n_classes, model.class_weight)
        error = totals.std() * np.sqrt(max(info.autocorrelation_time, 1.0) / len(totals))
        yield _in_errors("mean of S_k", totals.mean() - exact, error)
        return
    if route in ("log Z", "table"):
        exact = log_normalizer_exact(model.graph, beta, k, model.n_classes, model.class_weight)
        if route == "table":
            table = path_table(model, k_max=3, beta_max=1.5, random_state=case.seed)
            value, error = table.log_normalizer(beta, k), table.error(beta, k)
        else:
            value, error = log_normalizer(
                model.graph, beta, k, model.n_classes, "path", model.class_weight,
                random_state=case.seed,
            )  # fmt: skip
        yield _in_errors("log Z", value - exact, error)
        return
    make = PseudoLikelihood if route == "metropolis" else CoherentLikelihood
    likelihood = make(model, case.y)
    if route == "exact":
        first = grid_posterior(ExactLikelihood(model, case.y), prior)
    else:
        given = {"n_chains": 4, "n_draws": 1500, "n_warmup": 500, "random_state": case.seed}
        if route == "path":
            table = path_table(model, k_max=3, beta_max=2.5, random_state=case.seed)
            tree = metropolis(CoherentLikelihood(model, case.y, table=table), prior, **given)
        else:
            tree = {"metropolis": metropolis, "exchange": exchange, "auxiliary": auxiliary}[route](
                likelihood, prior, **given
            )
        first = None
    second = grid_posterior(likelihood, prior, exact=False, random_state=case.seed)
    if first is not None:
        error = np.hypot(first.beta_mean_error, second.beta_mean_error)
        yield _in_errors("E(beta)", first.beta_mean - second.beta_mean, error)
        error = np.hypot(first.log_evidence_error, second.log_evidence_error)
        yield _in_errors("log evidence", first.log_evidence - second.log_evidence, error)
        return
    draws, errors = tree["posterior"], diagnose(tree).mcse
    error = np.hypot(errors["beta"], second.beta_mean_error)
    yield _in_errors("E(beta)", float(draws["beta"].mean()) - second.beta_mean, error)
    # A k that no draw has may still have a probability of about 3 / n, which no chain can state.
    error = max(np.hypot(errors["k"], second.k_mean_error), 3 / draws["k"].size)
    k_mean = float(np.arange(1, 4) @ second.k_probabilities)
    yield _in_errors("E(k)", float(draws["k"].mean()) - k_mean, error)


def _in_errors(what: str, gap: float, error: float) -> Compared:
    # 1e-5 is the error of quadrature, which the standard errors do not include.
    return Compared(f"{what} in errors", float(abs(gap) / max(error, 1e-5)), _ERRORS)


def prior_range(case: Case) -> Iterator[Compared]:
    """Yield differences of predictions when the prior range of beta or of k is doubled.

    A difference may be as large as the posterior probability outside the smaller range, plus a
    numerical error.
    """
    rng, k_max = case.rng, case.classifier.max_neighbors
    beta_max = float(rng.choice([0.5, 2.0, 8.0, 100.0]))
    given = {"prior": None, "beta_max": beta_max}
    narrow = fit(case, **given)
    wide = fit(case, **{**given, "beta_max": 2 * beta_max})
    grid = wide.grid_
    beyond = float(grid.weights[grid.betas > 0.97 * beta_max].sum())
    gap = find_difference(narrow.predict_proba(case.new), wide.predict_proba(case.new))
    # 5e-3 allows for the reduction of the grid to fewer nodes in prediction.
    yield Compared("beta_max", gap, beyond + 5e-3)
    if not any("beta_max" in warning for warning in narrow.diagnostics_["warnings"]):
        yield Compared("mass beyond beta_max without a warning about it", beyond, 0.3)
    wide = fit(case, **given, max_neighbors=2 * k_max)
    beyond = float(wide.k_probabilities_[k_max:].sum())
    gap = find_difference(narrow.predict_proba(case.new), wide.predict_proba(case.new))
    yield Compared("max_neighbors", gap, beyond + 5e-3)


# Rejected arguments --------------------------------------------------------------------------


class Call(NamedTuple):
    """A call of a public function with one or two arguments out of range.

    Attributes
    ----------
    name : str
        Key of ``CALLS`` in ``tests/test_public_arguments.py``.
    wrong : list of (str, int)
        Names of the arguments, with indices of their values in ``BAD``.
    """

    name: str
    wrong: list[tuple[str, int]]


@st.composite
def wrong_calls(draw: st.DrawFn, options: dict[str, Any]) -> Call:
    """Draw a public function, and values out of range for one or two of its arguments."""
    from tests.test_public_arguments import BAD, CALLS, arguments

    # A row of options has every N_PARTS-th function.
    names = [name for name in sorted(CALLS) if set(arguments(name)[0]) & set(BAD)]
    name = draw(st.sampled_from(names[options["part"] :: N_PARTS]))
    given = [each for each in arguments(name)[0] if each in BAD]
    chosen = draw(st.lists(st.sampled_from(given), min_size=1, max_size=2, unique=True))
    return Call(name, [(each, draw(st.integers(0, len(BAD[each]) - 1))) for each in chosen])


N_PARTS = 20
REFUSED = [{"part": part} for part in range(N_PARTS)]
# The separate process in which the calls run, empty before the first call.
_runners: list[CaseRunner] = []


def refusal(case: Call) -> Iterator[Compared]:
    """Yield the number of faults of a call, which must raise a ValueError of one line."""
    if not _runners:
        _runners.append(CaseRunner())
        atexit.register(close_runner)
    faults = _runners[0](fuzz_cases.Case("call", (case.name, json.dumps(case.wrong))))
    yield Compared("; ".join(faults) or "rejected", len(faults), 0)


def close_runner() -> None:
    """End the process that makes the calls, if there is one."""
    while _runners:
        _runners.pop().close()


def check_call(name: str, wrong: str) -> list[str]:
    """Return the faults of a call with arguments out of range.

    A call without faults raises a ValueError of one line, or all its values are in ``ACCEPTED``.
    """
    from tests.test_public_arguments import ACCEPTED, BAD, CALLS, arguments, run

    given = json.loads(wrong)
    values = arguments(name)[1] | {each: BAD[each][at] for each, at in given}
    about = ", ".join(f"{each}={values[each]!r}"[:80] for each, _ in given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(CALLS[name], values)
        except ValueError as error:
            return [f"{name}({about}): {error}"] * ("\n" in str(error))
        except Exception as error:
            return [f"{name}({about}): {type(error).__name__}: {error}"]
    if all(at in ACCEPTED.get((name, each), ()) for each, at in given):
        return []
    return [f"{name}({about}) is accepted"]
