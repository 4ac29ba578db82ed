"""Page with the help of every command, for the command-line reference."""

from pathlib import Path

import click

from bayesknn.cli import main


def run(out: Path) -> dict[str, str]:
    """Write the page."""
    context = click.Context(main, info_name="bayesknn")
    parts = [_show(main, context)]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        parts.append(_show(command, click.Context(command, context, name)))
    (out / "command_line.md").write_text("\n".join(parts), encoding="utf-8")
    return {}


def _show(command: click.Command, context: click.Context) -> str:
    # 62 characters fit the width of a code block on a page of 1,200 pixels.
    context.max_content_width = context.terminal_width = 62
    return f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
