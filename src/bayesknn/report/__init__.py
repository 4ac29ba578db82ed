"""One's own data, end to end: a table is read, fitted, and told about in one page.

``reading`` takes CSV, Excel and Parquet files, ``columns`` decides what each column is,
``pipeline`` prepares them and keeps the model, ``described`` answers for either classifier,
``analysis`` fits and predicts, ``scores`` judges, ``comparison`` sets others beside it, ``figures``
and ``page`` show it, ``results`` sums it up, ``folder`` puts it in its place whole or not at all.

Names are imported when they are first used, so that the command line finds out what is wrong with
its arguments before anything heavy is loaded.
"""

from importlib import import_module
from typing import Any

from bayesknn._utils.extras import require

# In which module of this folder each public name lives.
_HOMES = {
    "Analysis": "analysis",
    "ColumnPlan": "columns",
    "Model": "pipeline",
    "analyse": "analysis",
    "build_pipeline": "pipeline",
    "load_model": "pipeline",
    "plan_columns": "columns",
    "read_table": "reading",
    "save_model": "pipeline",
    "write_report": "page",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bayesknn.report' has no attribute {name!r}")
    require("pandas", "bayesknn.report needs", "report")
    return getattr(import_module(f"bayesknn.report.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
