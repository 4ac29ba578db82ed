"""``bayesknn`` and ``python -m bayesknn``: the command, or how to get what it needs."""

import sys


def main() -> None:
    """Run the command line."""
    from bayesknn._utils.extras import require

    try:
        require("click", "the command line needs", "cli")
    except ModuleNotFoundError as error:
        sys.exit(f"Error: {error}")
    from bayesknn.cli import main as command

    command(prog_name="bayesknn")


if __name__ == "__main__":
    main()
