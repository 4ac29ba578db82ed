"""What a fit leaves behind: its four files, and a summary for machines and for people."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import is_installed, require
from bayesknn._version import __version__
from bayesknn.report.reading import KINDS
from bayesknn.report.words import MAX_LISTED, join

if TYPE_CHECKING:
    from bayesknn.report.analysis import Analysis
    from bayesknn.report.scores import Scores

FILES = ("predictions.csv", "posterior.nc", "model.skops", "report.html")
# What makes them.
PACKAGES = ("pandas", "matplotlib", "jinja2", "skops", "xarray", "h5netcdf")


def require_packages(*names: str) -> None:
    """Say what to install, before any work is done, if some of it could not be done."""
    for name in names:
        if not is_installed(name):
            require(name, "this command needs", "plot" if name == "matplotlib" else "report")


def write_results(folder: Path, analysis: Analysis, page: str) -> None:
    """Write the files of a fit to a folder; a pool has no posterior.

    Parameters
    ----------
    folder : Path
        It exists.
    analysis : Analysis
    page : str
        The report.
    """
    from bayesknn.posterior.trees import save_posterior
    from bayesknn.report.pipeline import save_model
    from bayesknn.report.predictions import write_csv

    csv, posterior, model, report = (folder / name for name in FILES)
    csv.write_text(write_csv(analysis.predictions), encoding="utf-8", newline="")
    if hasattr(analysis.classifier, "posterior_"):
        # Without the log-likelihood of each label under each draw: large, and quick to find.
        save_posterior(analysis.classifier.posterior_.drop_nodes("log_likelihood"), posterior)
    save_model(analysis.model.pipeline, model)
    report.write_text(page, encoding="utf-8", newline="")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def summarise(analysis: Analysis) -> dict[str, Any]:
    """Sum a fit up for a machine to read; every number is finite or None.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    dict
        Of text, numbers, lists and dictionaries, as JSON has them.
    """
    import numpy as np

    clf, training = analysis.classifier, analysis.training
    sizes = np.bincount(training.actual, minlength=len(training.classes))
    return {
        "version": __version__,
        "target": analysis.plan.target,
        "rows": len(training.rows),
        "numeric": analysis.plan.numeric,
        "categorical": analysis.plan.categorical,
        "kinds": analysis.plan.kinds,
        "dropped": analysis.plan.dropped,
        "classes": dict(zip(training.names, sizes.tolist(), strict=True)),
        "model": analysis.model.about.model,
        "search": clf.diagnostics_["search"],
        **analysis.model.about.summarise(),
        "scores": {basis: finite_scores(found) for basis, found in analysis.scores().items()},
        "comparison": {}
        if analysis.comparison is None
        else {
            name: finite_scores(found.scores) for name, found in analysis.comparison.found.items()
        },
        "decided": analysis.predictions.share_decided,
        "messages": analysis.messages,
        "warnings": analysis.warnings,
        "seconds": round(analysis.seconds, 3),
    }


def tell(analysis: Analysis) -> list[str]:
    """Sum a fit up in a few lines for a person to read."""
    found = analysis.predictions
    lines = [_tell_columns(analysis), *_tell_classes(analysis)]
    lines += [
        f"{basis[:1].upper()}{basis[1:]}: {tell_scores(scores)}"
        for basis, scores in analysis.scores().items()
    ]
    lines.append(found.tell_decided(analysis.level))
    lines.append(
        "predictions.csv: class is the most probable one; probability, low and high give the "
        "probability of each class and its interval; zone is the class of a decided row"
    )
    lines.append(analysis.model.about.tell())
    return lines


def tell_scores(found: Scores) -> str:
    """Give scores in one line."""
    return (
        f"{found.n:,} rows, error {100 * found.error:.1f} %, log-loss {found.log_loss:.3f}, Brier "
        f"score {found.brier:.3f}"
    )


def _tell_columns(analysis: Analysis) -> str:
    """Say in one line how every column was read."""
    kinds = analysis.plan.kinds
    groups = {word: [name for name in kinds if kinds[name] == kind] for kind, word in KINDS.items()}
    groups["left out"] = list(analysis.plan.dropped)
    parts = [f"{word}: {join(names)}" for word, names in groups.items() if names]
    return f"Columns: {'; '.join(parts)}"


def _tell_classes(analysis: Analysis) -> list[str]:
    """Say how many rows each class has, what always saying one errs in, and who is found."""
    import numpy as np

    from bayesknn.report.per_class import count_rare, find_rare, tell_majority

    training = analysis.training
    sizes = np.bincount(training.actual, minlength=len(training.classes))
    order = np.argsort(-sizes, kind="stable")
    listed = join([f"{training.names[g]} ({sizes[g]:,})" for g in order])
    majority = tell_majority(analysis, training.actual).replace("\xa0", " ")
    lines = [f"Classes: {listed}", f"Baseline: {majority}"]
    rare = []
    for g in find_rare(training.actual, len(sizes))[:MAX_LISTED]:
        counts = count_rare(training, g)
        rare.append(f"{counts['found']:,} of {counts['n']:,} rows of {training.names[g]} found")
    return lines + [f"Recall: {', '.join(rare)}"] * bool(rare)


def finite_scores(found: Scores) -> dict[str, float | None]:
    """Return scores by name as JSON has them, None for what is not finite."""
    values = found._asdict().items()
    return {name: value if math.isfinite(value) else None for name, value in values}
