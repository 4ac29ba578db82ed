"""One's own data, end to end: a table is read, fitted, and told about in one page.

``reading`` takes CSV, Excel and Parquet files, ``columns`` decides what each column is,
``pipeline`` prepares them and keeps the model, ``described`` answers for either classifier,
``analysis`` fits and predicts, ``scores`` judges, ``comparison`` sets others beside it, ``figures``
and ``page`` show it, ``results`` sums it up, ``folder`` puts it in its place whole or not at all.

Names are imported when they are first used, so that the command line finds out what is wrong with
its arguments before anything heavy is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayesknn._utils.extras import require

if TYPE_CHECKING:
    from bayesknn.report.analysis import Analysis, analyse
    from bayesknn.report.columns import ColumnPlan, plan_columns
    from bayesknn.report.page import write_report
    from bayesknn.report.pipeline import Model, build_pipeline, load_model, save_model
    from bayesknn.report.reading import read_table

__all__ = [
    "Analysis",
    "ColumnPlan",
    "Model",
    "analyse",
    "build_pipeline",
    "load_model",
    "plan_columns",
    "read_table",
    "save_model",
    "write_report",
]

_HOMES = {
    "analysis": ("Analysis", "analyse"),
    "columns": ("ColumnPlan", "plan_columns"),
    "page": ("write_report",),
    "pipeline": ("Model", "build_pipeline", "load_model", "save_model"),
    "reading": ("read_table",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            require("pandas", "bayesknn.report needs", "report")
            return getattr(import_module(f"bayesknn.report.{home}"), name)
    raise AttributeError(f"module 'bayesknn.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
