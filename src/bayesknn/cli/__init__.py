"""The command ``bayesknn``: what people type. A command is imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from bayesknn._version import __version__

# Where each command lives, and what ``bayesknn --help`` says about it without importing it.
COMMANDS = {
    "demo": ("bayesknn.cli.demo", "Run an example on Ripley's data; no files are needed."),
    "fit": ("bayesknn.cli.fit", "Fit a table, and write predictions, model and report."),
    "check": ("bayesknn.cli.check", "Look for what is wrong with a table, without a fit."),
    "predict": ("bayesknn.cli.predict", "Classify the rows of a table with a saved model."),
    "warmup": ("bayesknn.cli.warmup", "Compile what fits use, once after an installation."),
    "paper": ("bayesknn.cli.paper", "Reproduce the figures, tables and numbers of the paper."),
}


class _LazyGroup(click.Group):
    """A group that imports a command when it is called, and not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return getattr(import_module(COMMANDS[name][0]), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bayesknn")
def main() -> None:
    """k-nearest-neighbour classification that knows how sure it is."""
