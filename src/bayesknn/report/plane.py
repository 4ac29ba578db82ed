"""Two axes to look at a table along: two of its columns, or its principal axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import as_measured
from bayesknn.report.pipeline import build_pipeline
from bayesknn.report.scores import percent

_RESOLUTION = 140
_LOADINGS_NAMED = 3


class Plane(NamedTuple):
    """Rows in a plane.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
    names : tuple of two str
        Of the axes.
    words : str
        What the axes are, in a sentence; empty where they are columns.
    grid : tuple of ndarrays or None
        x, y and the zone at each of their points, where the model knows no other column.
    """

    points: np.ndarray
    names: tuple[str, str]
    words: str = ""
    grid: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None


def lay_plane(analysis: Analysis) -> Plane:
    """Lay the plane of the zones.

    Its axes are those the analysis was given, or the model's two columns if it has no others, or
    the principal axes of the standardised columns and the indicators.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    Plane
    """
    plan, columns = analysis.plan, analysis.axes
    only_two = len(plan.numeric) == 2 and not plan.categorical
    if columns is None and only_two:
        columns = (plan.numeric[0], plan.numeric[1])
    if columns is None:
        return _principal_plane(analysis)
    measured = as_measured(analysis.frame, {name: plan.kinds[name] for name in columns})
    points = measured.to_numpy(dtype=np.float64, na_value=np.nan)
    if analysis.model.impute:
        points = np.where(np.isnan(points), np.nanmedian(points, axis=0), points)
    grid = _find_zones(analysis, points, columns) if only_two else None
    return Plane(points, columns, grid=grid)


def _find_zones(
    analysis: Analysis, points: np.ndarray, columns: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import pandas

    from bayesknn.predictive import find_zones

    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.04 * (high - low)
    x, y = np.linspace(low - margin, high + margin, _RESOLUTION).T
    mesh = [axis.ravel() for axis in np.meshgrid(x, y)]
    kinds = analysis.plan.kinds
    frame = pandas.DataFrame(
        {
            name: pandas.to_datetime(axis, unit="D") if kinds[name] == "date" else axis
            for name, axis in zip(columns, mesh, strict=True)
        }
    )
    intervals = analysis.classifier.predict_interval(analysis.model.prepare(frame), analysis.level)
    return x, y, find_zones(intervals).reshape(_RESOLUTION, _RESOLUTION)


def _principal_plane(analysis: Analysis) -> Plane:
    points, names = _standardise(analysis)
    if points.shape[1] == 1:
        spread = np.random.default_rng(0).uniform(size=len(points))
        words = "There is one column; the height has no meaning and keeps the rows apart."
        return Plane(np.column_stack([points[:, 0], spread]), (names[0], ""), words)
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
        ", ".join(names[j] for j in np.argsort(-np.abs(axis))[:_LOADINGS_NAMED]) for axis in axes.T
    ]
    words = (
        "The axes are the two directions in which the standardised columns vary most; the first "
        f"is mostly made of {mostly[0]}, the second of {mostly[1]}."
    )
    return Plane(centred @ axes, (titles[0], titles[1]), words)


def _standardise(analysis: Analysis) -> tuple[np.ndarray, list[str]]:
    plan, model = analysis.plan, analysis.model
    frame = as_measured(analysis.frame, plan.kinds)
    pipeline = build_pipeline(plan, None, impute=model.impute)[:-1]
    points = np.asarray(pipeline.fit_transform(frame), dtype=np.float64)
    return points, [str(name) for name in pipeline.get_feature_names_out()]
