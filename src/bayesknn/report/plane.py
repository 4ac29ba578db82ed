"""Two axes to look at a table along: two of its columns, or its principal axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesknn.report.analysis import Analysis
from bayesknn.report.columns import as_measured, as_words
from bayesknn.report.pipeline import build_pipeline
from bayesknn.report.words import percent, shorten


class View(NamedTuple):
    """The rows in a plane.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
    names : tuple of two str
        Of the axes.
    words : str
        What the axes are, in a sentence; empty where they are columns.
    """

    points: np.ndarray
    names: tuple[str, str]
    words: str = ""


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
    if columns is None and len(plan.used) == len(plan.numeric) == 2:
        columns = (plan.numeric[0], plan.numeric[1])
    if columns is None:
        return _find_principal(analysis)
    measured = as_measured(analysis.frame, {name: plan.kinds[name] for name in columns})
    points = measured.to_numpy(dtype=np.float64, na_value=np.nan)
    if analysis.model.fills:
        points = np.where(np.isnan(points), np.nanmedian(points, axis=0), points)
    return View(points, columns)


def _find_principal(analysis: Analysis) -> View:
    from sklearn.decomposition import PCA

    plan = analysis.plan
    pipeline = build_pipeline(plan, None, impute=bool(analysis.model.fills))[:-1]
    frame = as_words(as_measured(analysis.frame, plan.kinds))
    points = np.asarray(pipeline.fit_transform(frame), dtype=np.float64)
    names = [str(name) for name in pipeline.get_feature_names_out()]
    if points.shape[1] == 1:
        spread = np.random.default_rng(0).uniform(size=len(points))
        words = "There is one column; the height has no meaning and keeps the rows apart."
        return View(np.column_stack([points[:, 0], spread]), (names[0], ""), words)
    # Exact at any size; its axes point to where their main column grows.
    found = PCA(2, svd_solver="covariance_eigh").fit(points)
    titles = tuple(
        f"{rank} principal axis ({percent(share)} of the variance)"
        for rank, share in zip(("first", "second"), found.explained_variance_ratio_, strict=True)
    )
    mostly = [
        ", ".join(shorten(names[j]) for j in np.argsort(-np.abs(axis))[:3])
        for axis in found.components_
    ]
    words = (
        "The axes are the two directions in which the standardised columns vary most; the first "
        f"is mostly made of {mostly[0]}, the second of {mostly[1]}."
    )
    return View(found.transform(points), (titles[0], titles[1]), words)
