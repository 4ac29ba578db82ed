"""Interpolation of log Z in beta: the table's spline against Hermite polynomials.

All interpolations are judged by exact log Z, at an equal number of sweeps. The Hermite polynomials
go through log Z at chosen beta with the slopes there, E[S_k] / k, and the quintic ones with the
curvatures Var[S_k] / k^2 too (Bazahica et al., arXiv 2603.29436). log Z comes from the chains of
the table, or for few chosen beta from the slopes by the trapezium rule with end correction.
"""

import numpy as np
from scipy.interpolate import BPoly

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.log_z.path import Path
from bayesknn.log_z.path_table import PathSampler
from bayesknn.log_z.records import N_CHAINS, Setting
from bayesknn.log_z.simulation import Simulation
from bayesknn.model import BoltzmannModel, log_normalizer_exact
from benchmarks.harness import Report

BETA_MAX, N_SEEDS, N_CHOSEN = 4.0, 8, (5, 9, 17, 33)
BETAS = np.linspace(0.0, BETA_MAX, 161)


def run(report: Report) -> None:
    ripley = NeighborGraph.from_points(load_ripley().X_train, k_max=4)
    rng = np.random.default_rng(0)
    plane = NeighborGraph.from_points(rng.normal(size=(100, 2)), k_max=4)
    for name, model, k in (
        ("Ripley, k = 3, 2 classes", BoltzmannModel(ripley, 2), 3),
        ("Ripley, k = 4, 2 classes", BoltzmannModel(ripley, 2), 4),
        ("100 points, k = 4, 3 classes", BoltzmannModel(plane, 3), 4),
    ):
        compare(report, name, model, k)


def compare(report: Report, name: str, model: BoltzmannModel, k: int) -> None:
    report.section(f"log Z in beta, {name}: root mean square error over beta and {N_SEEDS} seeds")
    exact = log_normalizer_exact(model, BETAS, k)
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(N_SEEDS):
        seeds = np.random.SeedSequence(seed)
        with Simulation(model, seeds, n_jobs=1) as simulation:
            sampler = PathSampler(simulation, BETA_MAX, 0.05)
            sampler.build(k, k)
            sampler.refine()
            curves = {"the table's spline": sampler.log_z(k, BETAS)[0]}
            curves |= interpolate(sampler.paths[k], k)
            n_sweeps = simulation.n_sweeps
        for n_nodes in N_CHOSEN:
            curves[f"{n_nodes} chosen beta"] = choose(model, seeds, k, n_nodes, n_sweeps)
        for what, curve in curves.items():
            errors.setdefault(what, []).append(curve - exact)
    table = float(np.sqrt(np.mean(np.square(errors["the table's spline"]))))
    report.line("the table's spline", table, "", against=f"exact; {n_sweeps} sweeps, last seed")
    for what, found in list(errors.items())[1:]:
        ratio = float(np.sqrt(np.mean(np.square(found)))) / table
        report.line(what, ratio, against="the table's spline")


def interpolate(path: Path, k: int) -> dict[str, np.ndarray]:
    """Return log Z through its values at the chains of a path, with slopes and curvatures."""
    (pairs,) = path.phases
    betas = np.array([pair.beta for pair in pairs])
    # The last chains stand beyond beta_max.
    values = path.curves[k](betas, slice(1))[0]
    slopes = np.array([pair.mean(k) / k for pair in pairs])
    bends = np.array([pair.variance(k) / k**2 for pair in pairs])
    cubic = np.stack([values, slopes], axis=1)
    quintic = np.stack([values, slopes, bends], axis=1)
    return {
        "cubic Hermite at the table's chains": BPoly.from_derivatives(betas, cubic)(BETAS),
        "quintic Hermite at the table's chains": BPoly.from_derivatives(betas, quintic)(BETAS),
    }


def choose(
    model: BoltzmannModel, seeds: np.random.SeedSequence, k: int, n_nodes: int, n_sweeps: int
) -> np.ndarray:
    """Return log Z from chains at evenly spaced beta alone, which make so many sweeps in all."""
    betas = np.linspace(0.0, BETA_MAX, n_nodes)
    with Simulation(model, seeds, n_jobs=1) as simulation:
        pairs = [simulation.pair(Setting.at(b, k), [k], (at,)) for at, b in enumerate(betas)]
        n_records = max(n_sweeps // (N_CHAINS * n_nodes) - pairs[0].n_warmup, 8) // pairs[0].thin
        simulation.add_records([(pair, n_records) for pair in pairs])
    slopes = np.array([pair.mean(k) / k for pair in pairs])
    bends = np.array([pair.variance(k) / k**2 for pair in pairs])
    h = np.diff(betas)
    steps = h / 2 * (slopes[1:] + slopes[:-1]) - h**2 / 12 * np.diff(bends)
    start = model.n_points * np.log(model.n_classes)
    values = start + np.append(0.0, np.cumsum(steps))
    return BPoly.from_derivatives(betas, np.stack([values, slopes, bends], axis=1))(BETAS)
