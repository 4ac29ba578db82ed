"""One's own data, end to end: a table is read, fitted, and told about in one page.

``reading`` takes CSV and Parquet files, ``columns`` decides what each column is, ``pipeline``
prepares them and keeps the model, ``analysis`` fits and predicts, ``scores`` judges, ``figures``
and ``page`` show it, ``folder`` puts it in its place whole or not at all.
"""

from bayesknn.report.analysis import Analysis, analyse
from bayesknn.report.columns import ColumnPlan, plan_columns
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
]
