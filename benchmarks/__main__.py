"""Command line of the benchmarks: ``python -m benchmarks [name ...]``."""

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.harness import Report


def main(names: list[str]) -> int:
    """Run ``bench_<name>`` for each name, or all benchmarks; return 1 if a target was missed."""
    available = [m.name for m in pkgutil.iter_modules(benchmarks.__path__)]
    known = sorted(name.removeprefix("bench_") for name in available if name.startswith("bench_"))
    unknown = set(names) - set(known)
    if unknown:
        print(f"unknown benchmark: {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
        return 2
    report = Report()
    for name in names or known:
        importlib.import_module(f"benchmarks.bench_{name}").run(report)
    if report.missed:
        missed = "; ".join(report.missed)
        report.console.print(f"\n[red]{len(report.missed)} missed:[/red] {missed}")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
