"""The default way to log Z(beta, k): Swendsen-Wang chains where they are needed (Section 3.3).

Ladders of rungs (``ladder.py``) stand at some k, near enough to each other that the k between
follow from both neighbours by reweighting (``rung.py``); how near, and where rungs go, pilot runs
tell (``pilot.py``). Then rungs run on until the error is small enough (``work.py``) where it
matters (``focus.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from bayesknn.graph import NeighborGraph
from bayesknn.likelihood.nodes import lay_out
from bayesknn.likelihood.path.curve import Curve, mix
from bayesknn.likelihood.path.exact import N_STEPS, eliminate, is_cheap
from bayesknn.likelihood.path.focus import find_focus
from bayesknn.likelihood.path.ladder import TOP, Ladder
from bayesknn.likelihood.path.pilot import find_next, look_ahead, place_rungs
from bayesknn.likelihood.path.work import plan_more

_MAX_ROUNDS = 12
# Share of the tolerance that is aimed at, because the error is itself only estimated, and how far
# beyond the tolerance it may be found for the same reason.
_AIM = 0.9
_SLACK = 1.2


class PathSampler:
    """One computation of log Z for some k.

    Parameters
    ----------
    graph : NeighborGraph
    n_classes : int
    class_weight : ndarray of shape (n_classes,) or None
    beta_max, tolerance : float
    seeds : numpy.random.SeedSequence
    n_jobs : int, optional
    report : callable
        Told after every piece of work, for a progress bar.

    Attributes
    ----------
    known : dict of int to Curve
        What was computed exactly, by k.
    ladders : dict of int to Ladder
        What was simulated, by k.
    """

    def __init__(
        self,
        graph: NeighborGraph,
        n_classes: int,
        class_weight: np.ndarray | None,
        beta_max: float,
        tolerance: float,
        seeds: np.random.SeedSequence,
        n_jobs: int | None = None,
        report: Callable[[float], Any] = lambda steps: None,
    ):
        self.graph, self.n_classes, self.class_weight = graph, n_classes, class_weight
        self.field = lay_out(graph, n_classes, class_weight)
        self.beta_max, self.tolerance, self.seeds = beta_max, tolerance, seeds
        self.n_jobs, self.report = n_jobs, report
        self.known: dict[int, Curve] = {}
        self.ladders: dict[int, Ladder] = {}

    def each(self, function: Callable, arguments: Iterable) -> list:
        """Call a function for each argument, in threads."""

        def call(argument):
            result = function(argument)
            self.report(1)
            return result

        arguments = list(arguments)
        if len(arguments) <= 1 or effective_n_jobs(self.n_jobs) == 1:
            return [call(argument) for argument in arguments]
        calls = (delayed(call)(argument) for argument in arguments)
        return Parallel(n_jobs=self.n_jobs, require="sharedmem")(calls)

    def eliminate(self, k_max: int) -> None:
        """Compute log Z exactly at k = 1, 2, ... as long as that is cheap."""
        k = 1
        while k <= k_max and is_cheap(self.graph, k, self.n_classes):
            k += 1
        curves = self.each(
            lambda k: eliminate(self.graph, k, self.n_classes, self.class_weight, self.beta_max),
            range(1, k),
        )
        self.known = dict(enumerate(curves, start=1))

    def build(self, k: int, k_max: int) -> None:
        """Put up ladders from k to k_max and let every rung make a first run."""
        while True:
            ladder = Ladder(
                self.graph, self.field, k, look_ahead(k, k_max), self.beta_max, self.seeds
            )
            place_rungs(ladder, self.each)
            self.ladders[k] = ladder
            if k == k_max:
                break
            k = find_next(ladder)
        feet = list(self.ladders)
        for before, ladder, after in zip(
            [feet[0], *feet], self.ladders.values(), [*feet[1:], feet[-1]], strict=False
        ):
            between = [*range(before + 1, ladder.k), ladder.k, *range(ladder.k + 1, after)]
            ladder.settle(between)
        self._run(
            (ladder, at, int(n_records))
            for ladder in self.ladders.values()
            for at, n_records in enumerate(ladder.fewest)
        )

    def _run(self, tasks: Iterable[tuple[Ladder, int, int]]) -> None:
        # The end shares the chains of the last rung, so it has to wait for it.
        tasks = list(tasks)
        is_end = [at == len(ladder.rungs) for ladder, at, _ in tasks]
        for wanted in (False, True):
            chosen = [task for task, end in zip(tasks, is_end, strict=True) if end == wanted]
            self.each(lambda task: task[0].advance(*task[1:]), chosen)

    def refine(self, observed: np.ndarray | None) -> list[str]:
        """Run on until the error is small enough; return doubts, in words, if there are any."""
        for _ in range(_MAX_ROUNDS):
            allowed = self._allow(observed)
            tasks = [
                (ladder, *task)
                for k, ladder in self.ladders.items()
                for task in plan_more(ladder, allowed[k])
            ]
            if not tasks:
                break
            self._run(tasks)
        return self._doubts(self._allow(observed))

    def _allow(self, observed: np.ndarray | None) -> dict[int, np.ndarray]:
        """Return the error allowed at each rung of each ladder."""
        aim = _AIM * self.tolerance
        allowed = {}
        if observed is None:
            for k, ladder in self.ladders.items():
                allowed[k] = np.where(np.array([*ladder.rungs]) <= TOP, aim, np.inf)
            return allowed
        curves = self.curves()
        ks = list(curves)
        focus = find_focus(curves, observed, self.beta_max)
        for k, ladder in self.ladders.items():
            served = ladder.rungs[TOP].columns
            rows = [focus.allow(ks.index(each), ladder.betas, aim) for each in served.tolist()]
            allowed[k] = np.min(rows, axis=0)[1:]
        return allowed

    @property
    def betas(self) -> np.ndarray:
        """An even grid up to beta_max that holds every rung."""
        places = [place for ladder in self.ladders.values() for place in ladder.rungs]
        step = int(np.gcd.reduce([TOP // N_STEPS, *places]))
        return np.arange(0, TOP + 1, step) * (self.beta_max / TOP)

    def curves(self) -> dict[int, Curve]:
        """Return log Z for every k, all on the same even grid."""
        betas = self.betas
        curves = {k: curve.move_to(betas) for k, curve in self.known.items()}
        feet = list(self.ladders)
        for low, high in zip(feet, feet[1:], strict=False):
            curves[low] = self.ladders[low].curve(low).move_to(betas)
            for k in range(low + 1, high):
                left = self.ladders[low].curve(k).move_to(betas)
                right = self.ladders[high].curve(k).move_to(betas)
                curves[k] = mix(left, right, (k - low) / (high - low))
        if feet:
            curves[feet[-1]] = self.ladders[feet[-1]].curve(feet[-1]).move_to(betas)
        return curves

    @property
    def n_sweeps(self) -> int:
        """Sweeps made in all."""
        return sum(ladder.n_sweeps for ladder in self.ladders.values())

    def _doubts(self, allowed: dict[int, np.ndarray]) -> list[str]:
        rungs = [rung for ladder in self.ladders.values() for rung in ladder.rungs.values()]
        split = [rung for rung in rungs if rung.is_split]
        doubts = []
        if split:
            doubts.append(
                f"chains started from one class and from random labels stay apart at {len(split)} "
                f"of {len(rungs)} settings (first at k={split[0].k}, beta={split[0].beta:.3f}): "
                "the model has a first-order transition there and log Z is less certain than its "
                "error says"
            )
        worst, words = _SLACK / _AIM, ""
        for k, ladder in self.ladders.items():
            error = ladder.curve(k).error()[1:]
            at = int(np.argmax(error / allowed[k]))
            if error[at] / allowed[k][at] > worst:
                worst = error[at] / allowed[k][at]
                words = (
                    f"log Z is known only to {error[at]:.2g} at k={k}, "
                    f"beta={ladder.betas[at + 1]:.3f}, where {allowed[k][at] / _AIM:.2g} was asked "
                    "for: the chains there are slow; allow a larger tolerance or a smaller k_max"
                )
        return [*doubts, words] if words else doubts
