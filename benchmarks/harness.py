"""Interleaved timing, and a report with one line for each measurement.

The machine is shared and noisy. Therefore the functions to be compared run in turn, several times,
and the ratio of their shortest times is reported. A target is a bound on a ratio to something
measured in the same run. It is at least a third above the measured ratio, so that it holds on other
machines. Times in seconds and sizes in bytes have no targets.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console


def interleave(functions: dict[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Return the shortest time in seconds of ``repeats`` runs of each function, run in turn.

    Every function is called once before it is timed, so that compilation is not included.
    """
    for function in functions.values():
        function()
    best = dict.fromkeys(functions, float("inf"))
    gc.collect()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


@dataclass
class Report:
    """Printed report of the measurements, and a list of the missed targets."""

    console: Console = field(default_factory=lambda: Console(width=110, highlight=False))
    missed: list[str] = field(default_factory=list)

    def section(self, title: str) -> None:
        """Print the title of a group of measurements."""
        self.console.print(f"\n[bold]{title}[/bold]")

    def note(self, text: str) -> None:
        """Print a line without a number, such as the reason why something was not measured."""
        self.console.print(f"{'':30}{text}", soft_wrap=True)

    def line(
        self,
        what: str,
        value: float,
        unit: str = "x",
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        against: str = "",
    ) -> None:
        """Print a measurement.

        With ``at_least`` or ``at_most`` it has a target. It must then be a ratio, and ``against``
        must name its reference.
        """
        is_target = at_least is not None or at_most is not None
        if is_target and not (unit == "x" and against):
            raise ValueError(f"{what}: a target needs the unit 'x' and a reference in against=")
        if at_least is not None:
            verdict, target = value >= at_least, f">= {at_least:g}"
        elif at_most is not None:
            verdict, target = value <= at_most, f"<= {at_most:g}"
        else:
            verdict, target = None, ""
        mark = {True: "[green]met   [/green]", False: "[red]MISSED[/red]", None: "      "}[verdict]
        if verdict is False:
            self.missed.append(what)
        self.console.print(f"{mark} {value:10.4g} {unit:<8}{target:<9} {what}", soft_wrap=True)
        if against:
            self.console.print(f"{'':36}[dim]against {against}[/dim]", soft_wrap=True)
