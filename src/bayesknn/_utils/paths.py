"""Checks of the paths that a command is given, made before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path


def check_readable(path: Path) -> None:
    """Raise ValueError for a file that cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file in it")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ValueError(f"{path} cannot be read: {reason}") from None


def find_model(path: str | Path) -> Path:
    """Return the file of a saved model, which is named or in the folder that is named."""
    path = Path(path)
    file = path / "model.skops" if path.is_dir() else path
    if not file.is_file():
        raise ValueError(f"there is no model at {file}")
    return file
