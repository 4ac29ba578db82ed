"""``python -m bayesknn.cli``."""

from bayesknn.cli import main

if __name__ == "__main__":
    main(prog_name="bayesknn")
