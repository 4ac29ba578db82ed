"""One's own data, end to end: a table is read, fitted, and described in one page.

``analysis`` fits a table model (``bayesknn.tables``, ``bayesknn.model_file``) and evaluates it
(``bayesknn.evaluation``); ``fitted`` does so with a classifier that was fitted from Python.
``figures`` and ``page`` make one HTML file of the result, and ``folder`` writes all files or none.

Names are imported when they are first used, so that the command line finds out what is wrong with
its arguments before anything heavy is loaded.
"""

from importlib import import_module
from typing import Any

from bayesknn._utils.extras import require

# Modules of the names that users import from here; those of docs/api.rst are public.
_HOMES = {
    "Analysis": "report.analysis",
    "Remark": "tables.remarks",
    "Table": "tables.table",
    "TableModel": "model_file.table_model",
    "TablePreparer": "tables.preparer",
    "analyse": "report.analysis",
    "load_model": "model_file.saved",
    "read_table": "tables.files",
    "save_model": "model_file.saved",
    "write_report": "report.page",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bayesknn.report' has no attribute {name!r}")
    require("pandas", "bayesknn.report needs", "report")
    return getattr(import_module(f"bayesknn.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
