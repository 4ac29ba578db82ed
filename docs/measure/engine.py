"""Figures of the engine page: pilots, beta of the chains, overlap of draws, transition, errors."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.special import logsumexp, softmax
from sklearn.datasets import make_blobs

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.log_z.along_beta import log_z_at
from bayesknn.log_z.chains import ChainPair
from bayesknn.log_z.mbar import combine
from bayesknn.log_z.records import Setting, standard_error
from bayesknn.log_z.simulation import Pilot, Simulation
from bayesknn.model import UniformPrior
from bayesknn.plots.style import COLOURS, GREY, INK, tidy
from bayesknn.posterior.quadrature.log_posterior import LogPosterior
from bayesknn.posterior.quadrature.mesh import Mesh
from bayesknn.posterior.quadrature.which_k import Candidate, CandidateSearch

BETA_MAX, TOLERANCE, MAX_SWEEPS = 4.0, 0.05, 1e6
N_FIVE, K_RIPLEY, K_FIVE = 500, 125, 100
TITLES = ("Ripley's data, two classes", "five overlapping classes")


class Recorder(Simulation):
    """A simulation that records the pilot runs of the search for k."""

    pilots: list[Pilot]

    def pilot(self, setting: Any, columns: Any, key: Any, *rest: Any, **options: Any) -> Pilot:
        """Run a pilot and record it; only pilots of the search have a key of length 3."""
        pilot = super().pilot(setting, columns, key, *rest, **options)
        if len(key) == 3:
            self.pilots.append(pilot)
        return pilot


class Run(NamedTuple):
    """Intermediate results of the engine on one data set."""

    target: LogPosterior
    pilots: list[Pilot]
    candidates: list[Candidate]
    search: CandidateSearch
    mesh: Mesh
    sweeps: list[int]

    @property
    def scores(self) -> np.ndarray:
        """The log posterior of each k in every replicate."""
        profiles = self.mesh.estimate.profiles
        return np.column_stack([p.summarise()[0] for p in profiles])


def follow(points: np.ndarray, labels: np.ndarray, k_max: int) -> Run:
    """Run the steps of ``grid_posterior`` and return their intermediate results."""
    likelihood = CoherentLikelihood(NeighborGraph.from_points(points, k_max), labels)
    target = LogPosterior(likelihood, UniformPrior(k_max, BETA_MAX))
    with Recorder(likelihood.model, np.random.SeedSequence(0), n_jobs=1) as simulation:
        simulation.pilots = []
        search = CandidateSearch(simulation, target, MAX_SWEEPS)
        candidates = search.run()
        pilots, sweeps = list(simulation.pilots), [simulation.n_sweeps]
        mesh = Mesh(simulation, target, candidates, TOLERANCE, MAX_SWEEPS, search.division)
        simulation.run(mesh)
        sweeps.append(simulation.n_sweeps)
        if search.division is None:
            pair, _ = mesh.reference
            log_z_at(simulation, pair.k, pair.beta, 4 * TOLERANCE, sweeps[-1] / 4)
        sweeps.append(simulation.n_sweeps)
    return Run(target, pilots, candidates, search, mesh, sweeps)


def run(out: Path) -> dict[str, str]:
    """Draw the figures and return the numbers of the engine page."""
    ripley = load_ripley()
    points, labels = make_blobs(N_FIVE, centers=5, cluster_std=3.0, random_state=2)
    two = follow(ripley.X_train, ripley.y_train, K_RIPLEY)
    five = follow(points, labels, K_FIVE)
    draw_pilots(out / "engine_pilots.png", (two, five))
    draw_mesh(out / "engine_mesh.png", (two, five))
    overlap = draw_overlap(out / "engine_mbar.png", two)
    transition = draw_transition(out / "engine_transition.png", five)
    error = draw_errors(out / "engine_errors.png", (two, five))
    return {
        "engine_n_five": str(N_FIVE),
        "engine_n_pilots": str(len(two.pilots)),
        "engine_n_kept": str(len(two.mesh.estimate.profiles)),
        "engine_k_max": str(K_RIPLEY),
        "engine_n_pairs": str(len(two.mesh.phases[0])),
        "engine_sweeps": f"{two.sweeps[-1]:,}",
        "engine_five_sweeps": f"{five.sweeps[-1]:,}",
        **overlap,
        **transition,
        **error,
    }


def draw_pilots(path: Path, runs: tuple[Run, Run]) -> None:
    """Draw the (beta, k) of each pilot, and the mode of beta at each k that was kept."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    for ax, one, title in zip(figure.subplots(1, 2), runs, TITLES, strict=True):
        kinds = {
            "pilot": [p for p in one.pilots if not (p.is_slow or p.pair.window.rank)],
            "pilot whose chains are slow": [p for p in one.pilots if p.is_slow],
            "pilot in one phase": [p for p in one.pilots if p.pair.window.rank],
        }
        for (label, pilots), fill in zip(kinds.items(), (GREY, "none", COLOURS[5]), strict=True):
            if pilots:
                at = np.array([(p.pair.k, p.pair.beta) for p in pilots]).T
                edge = COLOURS[5] if fill == COLOURS[5] else GREY
                ax.plot(*at, "o", mec=edge, mfc=fill, ms=4, label=label)
        kept = [(candidate.k, candidate.top) for candidate in one.candidates]
        ax.plot(*zip(*kept, strict=True), ".-", color=COLOURS[0], ms=5, label="mode curve, k kept")
        ax.set(xscale="log", xlabel="k", ylabel=r"$\beta$", ylim=(0.6, 2.1))
        ax.set_title(title, fontsize="medium")
        ax.legend(frameon=False, fontsize="small", loc="lower right")
        tidy(ax)
    figure.savefig(path)


def draw_mesh(path: Path, runs: tuple[Run, Run]) -> None:
    """Draw the (beta, k) of the chains, and the central 95 % posterior range of beta at each k."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    for ax, one, title in zip(figure.subplots(1, 2), runs, TITLES, strict=True):
        p = softmax(one.scores[0])
        for profile, weight in zip(one.mesh.estimate.profiles, p / p.max(), strict=True):
            nodes = np.linspace(*one.mesh.nodes[profile.k][[0, -1]], 400)
            masses = np.cumsum(softmax(profile.log_posterior(nodes, slice(1))[0]))
            low, high = np.interp([0.025, 0.975], masses, nodes)
            alpha = 0.12 + 0.68 * weight
            ax.plot([profile.k] * 2, [low, high], color=COLOURS[0], alpha=alpha, lw=3, zorder=0)
        names = ("disordered phase", "ordered phase") if one.search.division else ("pair",)
        for at, (phase, name) in enumerate(zip(one.mesh.phases, names, strict=True)):
            ks = [np.average(p.setting.ks, weights=p.setting.rates) for p in phase]
            betas = [pair.beta for pair in phase]
            colour = (INK, COLOURS[5])[at]
            label = f"{name} of chains" if name == "pair" else f"pair of chains, {name}"
            ax.plot(ks, betas, "o^"[at], color=colour, ms=3.5, mfc="none", label=label)
        ax.set(xlabel="k", ylabel=r"$\beta$")
        ax.set_title(title, fontsize="medium")
        ax.legend(frameon=False, fontsize="small", loc="upper right")
        tidy(ax)
    figure.savefig(path)


def draw_overlap(path: Path, one: Run) -> dict[str, str]:
    """Draw S of the two pairs of chains next to the mode of the best k, and log Z of all pairs."""
    best = int(one.mesh.ks[np.argmax(one.scores[0])])
    pairs = one.mesh.phases[0]
    nearest = min(
        {pair.k for pair in pairs if len(pair.setting.ks) == 1}, key=lambda k: abs(k - best)
    )
    beside = [p for p in pairs if p.setting.ks == (nearest,)][:2]
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    scale = nearest * one.target.model.n_points
    for pair, colour in zip(beside, (COLOURS[0], COLOURS[5]), strict=True):
        values = pair.series(nearest).ravel() / scale
        label = rf"draws at $\beta$ = {pair.beta:.2f}"
        left.hist(values, bins=20, density=True, color=colour, alpha=0.5, label=label)
    left.axvline(one.target.observed[nearest - 1] / scale, color=INK, ls="--", label="observed")
    left.set(xlabel=f"proportion of edges that agree, k = {nearest}", yticks=[])
    left.legend(frameon=False, fontsize="small")
    mode, pad = one.mesh.tops[best], 0.45
    betas = np.linspace(mode - pad, mode + pad, 31)
    combined = combine(pairs, [Setting.at(beta, best) for beta in betas])
    # The difference from the value at the mode, minus the linear term of the observed labels, is
    # the negative log-likelihood up to a constant.
    log_z = combined.of_targets - combined.of_targets[:, [15]]
    bend = log_z - (betas - mode) * one.target.observed[best - 1] / best
    error = standard_error(bend)
    right.fill_between(
        betas, bend[0] - 2 * error, bend[0] + 2 * error, color=COLOURS[0], alpha=0.3, lw=0
    )
    right.plot(betas, bend[0], color=COLOURS[0])
    right.set(xlabel=r"$\beta$", ylabel=rf"$-\log f(y\mid\beta, k = {best})$ above its least")
    at_pairs = [p.beta for p in pairs if abs(p.beta - mode) < pad]
    right.plot(at_pairs, np.full(len(at_pairs), bend[0].min() - 0.4), "|", color=INK, ms=8)
    for ax in (left, right):
        tidy(ax)
    figure.savefig(path)
    return {
        "engine_k": str(best),
        "engine_k_beside": str(nearest),
        "engine_n_effective": f"{combined.n_effective[15]:,.0f}",
        "engine_log_z_error": f"{error[-1]:.2f}",
    }


def draw_transition(path: Path, one: Run) -> dict[str, str]:
    """Draw chains from both starts at the beta of equal phase weights, and log Z of each phase."""
    division = one.search.division
    betas = np.linspace(division.betas.min() - 0.25, division.betas.max() + 0.25, 201)
    phases = np.array([division.curve.of_phase(at, betas, slice(1))[0] for at in (0, 1)])
    middle = int(np.argmin(np.abs(phases[0] - phases[1])))
    k, model = division.k, one.target.model
    pair = ChainPair(
        model, Setting.at(betas[middle], k), [k], np.random.SeedSequence(1), thin=1, n_warmup=0
    )
    pair.advance(3000)
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    starts = ("from labels of one class", "from random labels")
    for series, label, colour in zip(pair.series(k), starts, (COLOURS[5], COLOURS[0]), strict=True):
        left.plot(series / (k * model.n_points), color=colour, lw=0.6, label=label)
    left.set(xlabel="sweep", ylabel="proportion of edges that agree", ylim=(0, 1))
    left.legend(frameon=False, fontsize="small", loc="lower right")
    total = logsumexp(phases, axis=0)
    line = (
        total[middle]
        + (betas - betas[middle]) * np.mean(np.diff(phases, axis=1)) / np.diff(betas)[0]
    )
    for values, label, colour in zip(
        phases, ("disordered", "ordered"), (COLOURS[0], COLOURS[5]), strict=True
    ):
        right.plot(betas, values - line, color=colour, label=f"log Z of the {label} phase")
    right.plot(betas, total - line, color=INK, ls="--", label="log Z")
    right.set(xlabel=r"$\beta$", ylabel="log Z minus a linear function")
    right.legend(frameon=False, fontsize="small")
    for ax in (left, right):
        tidy(ax)
    figure.savefig(path)
    return {"engine_division_k": str(k), "engine_division_beta": f"{betas[middle]:.2f}"}


def draw_errors(path: Path, runs: tuple[Run, Run]) -> dict[str, str]:
    """Draw P(k) in all replicates, the error of its log, and the sweeps used by each step."""
    figure = Figure(figsize=(9.0, 3.0), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for one, title, colour in zip(runs, TITLES, (COLOURS[0], COLOURS[5]), strict=True):
        p = softmax(one.scores, axis=1)
        left.plot(one.mesh.ks, p[1:].T, color=GREY, lw=0.4, alpha=0.5)
        left.plot(one.mesh.ks, p[0], color=colour, lw=1.3, label=title)
        visible = p[0] > 0.01 * p[0].max()
        error = standard_error(np.log(p[:, visible]))
        middle.plot(one.mesh.ks[visible], error, ".-", color=colour)
    left.set(xlabel="k", ylabel="P(k | y)", ylim=(0, 0.36))
    left.legend(frameon=False, fontsize="small")
    middle.axhline(TOLERANCE, color=INK, ls="--", lw=0.8)
    middle.set(xlabel="k", ylabel="Monte Carlo error of log P(k | y)", ylim=(0, None))
    parts = np.array([np.diff([0, *one.sweeps]) / one.sweeps[-1] for one in runs])
    names, start = ("search", "mesh", "evidence"), np.zeros(2)
    for part, name, colour in zip(parts.T, names, (GREY, COLOURS[0], COLOURS[5]), strict=True):
        right.barh(["Ripley", "five"], 100 * part, left=start, color=colour, label=name)
        start += 100 * part
    right.set(xlabel="% of all sweeps", ylim=(1.5, -1.0))
    right.legend(frameon=False, fontsize="small", loc="upper center", ncols=3)
    for ax in (left, middle, right):
        tidy(ax)
    figure.savefig(path)
    p = softmax(runs[0].scores, axis=1)
    best = int(np.argmax(p[0]))
    return {
        "engine_p_best": f"{p[0, best]:.3f}",
        "engine_p_error": f"{standard_error(p)[best]:.3f}",
        "engine_n_replicates": str(len(p) - 1),
        "engine_tolerance": str(TOLERANCE),
    }
