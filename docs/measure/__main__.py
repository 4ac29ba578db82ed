"""Measurement of all numbers in the documentation: ``python docs/measure``.

It writes to ``docs/_generated``: ``numbers.json`` has the numbers of all pages by name, and tables
and figures are separate files. Long measurements are not part of it. Their results are stored in
the repository, and ``python docs/measure NAME`` repeats one of them (``benchmarks``, ``clients``,
``first_use``, ``groups``, ``interval_coverage``, ``prediction``, ``autogluon``, ``scaling``,
``max_neighbors``, ``left_out``, ``verdicts``). ``python docs/measure members`` only prints, and
``python docs/measure readme`` updates the figures and measured passages of the README.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
OUT = Path(__file__).parent.parent / "_generated"


def main(names: list[str]) -> None:
    """Repeat the named measurements; without names measure everything that a build needs."""
    import clients
    import command_line
    import comparison
    import comparison_autogluon
    import engine
    import first_use
    import groups
    import index
    import interval_coverage
    import intervals
    import left_out
    import max_neighbors
    import members
    import methods
    import model
    import paper
    import pool
    import prediction
    import programs
    import readme
    import scaling
    import speeds
    import start
    import verdicts

    writers = {
        "benchmarks": speeds.write,
        "clients": clients.write,
        "first_use": first_use.write,
        "groups": groups.write,
        "interval_coverage": interval_coverage.write,
        "prediction": comparison.write,
        "autogluon": comparison_autogluon.write,
        "scaling": scaling.write,
        "max_neighbors": max_neighbors.write,
        "left_out": left_out.write,
        "members": members.write,
        "verdicts": verdicts.write,
        "readme": readme.write,
    }
    for name in names:
        writers[name]()
    if names:
        return
    OUT.mkdir(exist_ok=True)
    numbers: dict[str, str] = {}
    with mpl.rc_context({"font.size": 9, "savefig.dpi": 160}):
        for part in (
            index,
            model,
            engine,
            methods,
            pool,
            left_out,
            prediction,
            intervals,
            interval_coverage,
            groups,
            scaling,
            programs,
            start,
            paper,
            clients,
            command_line,
            first_use,
            verdicts,
        ):
            print(f"measuring: {part.__name__}", flush=True)
            numbers |= part.run(OUT)
    (OUT / "numbers.json").write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
