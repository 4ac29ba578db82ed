"""``bayesknn warmup``: compile before anybody waits for it."""

from __future__ import annotations

import click

from bayesknn.cli.errors import Command, debug_option, print_lines


@click.command(cls=Command)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@debug_option
def warmup(quiet: bool) -> None:
    """Compile what fits and predictions with default settings use, and print how long it takes.

    For container images and new installations: the compiled functions are kept on disk, in
    NUMBA_CACHE_DIR if it is set, else beside the package or in the user's cache folder.
    """
    from bayesknn._utils.jit import find_cache
    from bayesknn._warmup import warmup as compile_all

    lines = []
    for what, n_functions, seconds in compile_all():
        compiled = f"{n_functions} functions compiled in {seconds:.1f} CPU s"
        lines.append(f"{what}: {compiled if n_functions else 'all compiled before'}")
    cache = find_cache()
    if cache is None:
        lines.append(
            "Nothing is kept: no folder can be written, and each process compiles again; set "
            "NUMBA_CACHE_DIR to a folder that can be"
        )
    elif cache.name == "__pycache__":
        lines.append(f"Kept in the folders __pycache__ of {cache.parents[1]}")
    else:
        lines.append(f"Kept in {cache.parent}")
    if not quiet:
        print_lines(lines)
