"""The report: one HTML page that needs nothing beside itself.

Names of classes and columns come from the data, so everything that enters the page is escaped but
the figures, whose text matplotlib escapes. The page has no script, and its content policy forbids
one, as well as any request.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bayesknn._version import __version__
from bayesknn.report import per_class, sections
from bayesknn.report.analysis import Analysis, analyse_fitted
from bayesknn.report.figures import class_colours
from bayesknn.report.words import MAX_LISTED, count, percent, shorten

_TEMPLATES = Path(__file__).parent / "templates"


def write_report(
    model: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    out: str | Path = "report.html",
    level: float = 0.95,
    compare: bool = True,
    groups: Any = None,
    time: Any = None,
) -> Path:
    """Write the report that ``bayesknn fit`` writes, about a classifier fitted from Python.

    Parameters
    ----------
    model : BayesianKNeighborsClassifier, PooledNeighborsClassifier or Pipeline
        Fitted to X and y; a pipeline ends with one of the two.
    X : array-like or frame of shape (n, p)
        The rows that it was fitted to, in their order; others are refused.
    y : array-like of shape (n,)
        Their classes.
    X_test, y_test : array-like or frame, optional
        Further rows, and their classes if these are known.
    out : str or Path, default="report.html"
        The file to write; an earlier one is replaced.
    level : float, default=0.95
        Of the intervals.
    compare : bool, default=True
        Whether to compare with other classifiers, in cross-validation.
    groups : array-like of shape (n,), optional
        Which rows belong together, such as those of a patient: the classifier is also judged by
        whole groups that it has not seen.
    time : array-like of shape (n,), optional
        Dates or numbers: the classifier is also judged by the last fifth of the rows, fitted to
        those before.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesknn import BayesianKNeighborsClassifier
    >>> from bayesknn.datasets import load_ripley
    >>> from bayesknn.report import write_report
    >>> ripley = load_ripley(as_frame=True)
    >>> clf = BayesianKNeighborsClassifier("pseudo", random_state=0)
    >>> clf = clf.fit(ripley.X_train, ripley.y_train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(clf, ripley.X_train, ripley.y_train,
    ...                         out=pathlib.Path(folder) / "report.html", compare=False)
    ...     "confusion matrix" in path.read_text(encoding="utf-8")
    True
    """
    analysis = analyse_fitted(model, X, y, X_test, y_test, level, compare, groups, time)
    source = f"{len(analysis.frame):,} rows of {type(X).__name__}"
    page = render_report(
        analysis,
        source=source,
        command=f"model = {model!r}.fit(X, y)\nwrite_report(model, X, y)",
        predict_command="model.predict_summary(X_new)",
        files={},
    )
    path = Path(out)
    path.write_text(page, encoding="utf-8", newline="")
    return path


def render_report(
    analysis: Analysis,
    *,
    source: str,
    command: str,
    files: Mapping[str, str],
    predict_command: str = "bayesknn predict model.skops NEW.csv --out predictions.csv",
) -> str:
    """Write the report of an analysis.

    Parameters
    ----------
    analysis : Analysis
    source : str
        What the training table is called.
    command : str
        The command that does it again.
    files : mapping of str to str
        Tables that were read, and the SHA-256 of each.
    predict_command : str
        What predicts new rows.

    Returns
    -------
    str
        The page. The same analysis gives the same bytes.
    """
    colours = class_colours(len(analysis.training.classes))
    classes = per_class.name_classes(analysis, colours)
    rare = per_class.make_rare(analysis, classes)
    thresholds = per_class.make_thresholds(analysis, classes)
    importance = sections.make_importance(analysis, classes)
    ranked = importance["found"].names if importance else analysis.plan.used
    packages = ("numpy", "scikit-learn", "numba")
    return _open_template().render(
        version=__version__,
        versions=", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)]
        ),
        css=(_TEMPLATES / "style.css").read_text(encoding="utf-8"),
        source=source,
        max_listed=MAX_LISTED,
        count=count,
        analysis=analysis,
        about=analysis.model.about,
        headline=sections.make_headline(analysis, thresholds),
        names=classes,
        classes=per_class.make_classes(analysis, classes),
        # The sections in their order; those of other models and those without content are None.
        parts={
            "rare": rare,
            "zones": sections.make_zones(analysis, ranked, colours),
            "confusion": per_class.make_confusion(analysis, classes),
            "thresholds": thresholds,
            "scores": sections.make_scores(analysis),
            "comparison": sections.make_comparison(analysis),
            "pool": None,
            "uncertain": sections.make_cases(analysis, classes),
            "importance": importance,
            "posterior": None,
            "criticism": sections.make_criticism(analysis),
            "data": sections.describe_columns(analysis),
            "diagnostics": analysis.model.about.explain(),
            "repeat": {"command": command, "predict": predict_command, "files": files},
            **analysis.model.about.make_sections(),
        },
    )


def _open_template() -> Any:
    """Return the page without its content; whatever is put into it is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["sentence"] = lambda text: f"{text[:1].upper()}{text[1:]}."
    environment.filters |= {"shorten": shorten, "percent": percent, "score": sections.show_score}
    environment.filters["commas"] = "{:,}".format
    # An option is not broken in two.
    environment.filters["options"] = lambda text: Markup(
        re.sub(r"--[\w-]+", r'<span class="nowrap">\g<0></span>', escape(text))
    )
    return environment.get_template("report.html.jinja")
