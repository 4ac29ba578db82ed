"""Two axes to look at a table along: two of its columns, or its principal axes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bayesknn.plots.plane import Plane, plane_around
from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import as_measured
from bayesknn.report.pipeline import build_pipeline
from bayesknn.report.words import percent, shorten

_RESOLUTION = 100


class View(NamedTuple):
    """The rows in a plane.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
    names : tuple of two str
        Of the axes.
    words : str
        What the axes are, in a sentence; empty where they are columns.
    plane, zones : Plane and ndarray, or None
        A grid over the two axes and the zone at each of its points, where there is no other column
        and predictions are quick.
    """

    points: np.ndarray
    names: tuple[str, str]
    words: str = ""
    plane: Plane | None = None
    zones: np.ndarray | None = None


def find_view(analysis: Analysis) -> View:
    """Choose the axes to look along.

    They are those the analysis was given, or the model's two columns if it has no others, or the
    principal axes of the standardised columns and the indicators.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    View
    """
    plan, columns = analysis.plan, analysis.axes
    only_two = len(plan.numeric) == 2 and not plan.categorical
    if columns is None and only_two:
        columns = (plan.numeric[0], plan.numeric[1])
    if columns is None:
        return _find_principal(analysis)
    measured = as_measured(analysis.frame, {name: plan.kinds[name] for name in columns})
    points = measured.to_numpy(dtype=np.float64, na_value=np.nan)
    if analysis.model.impute:
        points = np.where(np.isnan(points), np.nanmedian(points, axis=0), points)
    if not only_two or analysis.model.about.is_slow:
        return View(points, columns)
    frame: Any = type(measured)(dict(zip(columns, points.T, strict=True)))
    named = SimpleNamespace(feature_names_in_=columns)
    plane = plane_around(named, frame, _RESOLUTION, "the picture of the zones")
    return View(points, columns, "", plane, _find_zones(analysis, plane.grid))


def _find_zones(analysis: Analysis, grid: Any) -> np.ndarray:
    from bayesknn.predictive import find_zones

    intervals = analysis.classifier.predict_interval(
        analysis.model.transform(grid), analysis.level, of="probability"
    )
    return find_zones(intervals).reshape(_RESOLUTION, _RESOLUTION)


def _find_principal(analysis: Analysis) -> View:
    plan = analysis.plan
    pipeline = build_pipeline(plan, None, impute=analysis.model.impute)[:-1]
    frame = as_measured(analysis.frame, plan.kinds)
    points = np.asarray(pipeline.fit_transform(frame), dtype=np.float64)
    names = [str(name) for name in pipeline.get_feature_names_out()]
    if points.shape[1] == 1:
        spread = np.random.default_rng(0).uniform(size=len(points))
        words = "There is one column; the height has no meaning and keeps the rows apart."
        return View(np.column_stack([points[:, 0], spread]), (names[0], ""), words)
    centred = points - points.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    shares = values[::-1] / values.sum()
    axes = vectors[:, ::-1][:, :2]
    # Of the two directions of an axis, the one in which its main column grows.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    titles = tuple(
        f"{rank} principal axis ({percent(share)} of the variance)"
        for rank, share in zip(("first", "second"), shares, strict=False)
    )
    mostly = [
        ", ".join(shorten(names[j]) for j in np.argsort(-np.abs(axis))[:3]) for axis in axes.T
    ]
    words = (
        "The axes are the two directions in which the standardised columns vary most; the first "
        f"is mostly made of {mostly[0]}, the second of {mostly[1]}."
    )
    return View(centred @ axes, (titles[0], titles[1]), words)
