"""``bayesknn check``: what there is to know about a table, without a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bayesknn.cli.errors import (
    COLUMNS,
    FILE,
    FORM,
    Command,
    column_option,
    common_options,
    preparer_options,
    print_json,
    print_lines,
    print_remarks,
    take,
)


@click.command(cls=Command)
@click.argument("data", type=FILE)
@click.option("--target", required=True, metavar="COLUMN", help="The column of the classes.")
@preparer_options
@column_option("--group", help="Column of groups of rows, which is not used.")
@column_option("--weights", help="Column of weights of rows, which is not used.")
@common_options
def check(data: Path, target: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """Print what bayesknn fit would say about a table, and fit nothing.

    The same notes and warnings as those of bayesknn fit: kinds of columns, formats, columns that
    are left out, columns that give the class away, classes that change with time, duplicate rows.
    """
    from bayesknn._utils.paths import check_readable
    from bayesknn.report.folder import require_packages

    check_readable(data)
    require_packages("pandas")
    from bayesknn.model_file.table_model import TableModel
    from bayesknn.tables.files import read_table
    from bayesknn.tables.preparer import TablePreparer
    from bayesknn.tables.remarks import SKIPPED, tell, to_json

    X, y, _ = read_table(data, **take(options, FORM)).split(target, options["rare"])
    model = TableModel(TablePreparer(**take(options, (*COLUMNS, "group", "weights"))))
    model.learn(X, y)
    preparer = model.preparer_
    if as_json:
        kinds = {"kinds": preparer.kinds_, "dropped": preparer.dropped_}
        print_json({"target": target, "rows": len(y), **kinds, **to_json(preparer.remarks_)})
    elif not quiet:
        print_remarks(preparer.remarks_)
        print_lines(f"not checked: {text}" for text in tell(preparer.remarks_, SKIPPED))
        print_lines(f"{name}: {preparer.columns_[name].kind.plural}" for name in preparer.kinds_)
