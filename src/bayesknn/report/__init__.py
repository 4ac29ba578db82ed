"""One's own data, end to end: a table is read, fitted, and told about in one page.

``reading`` takes CSV, Excel and Parquet files, ``columns`` decides which columns are used,
``model`` prepares them for a classifier and keeps it, ``predictions`` says what it predicts and
how good that was, ``analysis`` does all of it, ``comparison`` sets others beside it,
``explanation`` asks why, ``figures`` and ``page`` show it, ``folder`` puts it in its place.

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
    "Model": "model",
    "analyse": "analysis",
    "build_pipeline": "model",
    "load_model": "model",
    "plan_columns": "columns",
    "read_table": "reading",
    "save_model": "model",
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
