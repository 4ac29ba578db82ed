"""Errors of interpolations of log Z in beta: the spline of the table and Hermite polynomials.

All are compared with exact log Z, with equal numbers of sweeps. A cubic Hermite polynomial matches
log Z and its slope E[S_k] / k at chosen beta; a quintic one also matches the curvature
Var[S_k] / k^2 (Bazahica et al., arXiv 2603.29436). The values of log Z come from the chains of the
table; with few chosen beta they are computed from the slopes by the corrected trapezium rule.
"""

import numpy as np
from scipy.interpolate import BPoly

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.log_z.along_beta import Path
from bayesknn.log_z.records import N_CHAINS, Setting
from bayesknn.log_z.simulation import MAX_SWEEPS, Simulation
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
            path = Path(simulation, k, BETA_MAX, 0.05, MAX_SWEEPS)
            simulation.run(path)
            curves = {"the table's spline": path.curves[k](BETAS, slice(1))[0]}
            curves |= interpolate(path, k)
            n_sweeps = simulation.n_sweeps
        for n_nodes in N_CHOSEN:
            curves[f"{n_nodes} chosen beta"] = choose(model, seeds, k, n_nodes, n_sweeps)
        for what, curve in curves.items():
            errors.setdefault(what, []).append(curve - exact)
    table = float(np.sqrt(np.mean(np.square(errors["the table's spline"]))))
    report.line("the table's spline", table, "", against=f"exact; {n_sweeps} sweeps, last seed")
    for what, gaps in list(errors.items())[1:]:
        ratio = float(np.sqrt(np.mean(np.square(gaps)))) / table
        report.line(what, ratio, against="the table's spline")


def interpolate(path: Path, k: int) -> dict[str, np.ndarray]:
    """Return cubic and quintic Hermite interpolations of log Z at the chains of a path, by name."""
    (pairs,) = path.phases
    betas = np.array([pair.beta for pair in pairs])
    # The largest beta of the chains exceeds beta_max, so BETAS lies within their range.
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
    """Return log Z at BETAS from chains at ``n_nodes`` equally spaced beta, ``n_sweeps`` in all."""
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
