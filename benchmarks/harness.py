"""Interleaved timing and one line per target.

The machine is shared and noisy, so what is compared is run in turn, several times over, and the
ratio of the fastest times is reported. A target is a ratio to something measured in the same run,
with a margin of a third or more over what was seen, so that it holds on another machine. Seconds
and bytes are shown without one.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console


def interleave(functions: dict[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """Seconds of the fastest of ``repeats`` runs of each function, run in turn.

    Every function is called once before the clock starts, so compilation does not count.
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
    """Prints a line per measurement and remembers the targets that were missed."""

    console: Console = field(default_factory=lambda: Console(width=110, highlight=False))
    missed: list[str] = field(default_factory=list)

    def section(self, title: str) -> None:
        """Start a group of lines."""
        self.console.print(f"\n[bold]{title}[/bold]")

    def note(self, words: str) -> None:
        """Print what could not be measured, and why."""
        self.console.print(f"{'':30}{words}", soft_wrap=True)

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
        """Print one measurement; with ``at_least`` or ``at_most`` it is a target, and a ratio."""
        is_target = at_least is not None or at_most is not None
        if is_target and not (unit == "x" and against):
            raise ValueError(f"{what}: a target is a ratio to something that is named")
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
