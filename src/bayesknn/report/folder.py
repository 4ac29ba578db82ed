"""Output that is there whole or not at all: written beside its place, then renamed into it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path


def check_output(path: Path, force: bool, own: Collection[str] = ()) -> None:
    """Refuse, before any work is done, a place that could not be written to at its end.

    Parameters
    ----------
    path : Path
        The file or folder to be.
    force : bool
        Whether to replace what is there.
    own : collection of str
        For a folder: the names it may hold if it is to be replaced. A folder with anything else
        in it is never replaced.
    """
    if path.exists():
        if path.is_dir() and own:
            strange = sorted(entry.name for entry in path.iterdir() if entry.name not in own)
            if strange:
                raise ValueError(
                    f"{path} holds {strange[0]!r}, which is not a file of this command; choose "
                    "another folder"
                )
            if force or not any(path.iterdir()):
                return
        elif path.is_dir() or own:
            raise ValueError(f"{path} is {'a folder' if path.is_dir() else 'not a folder'}")
        elif force:
            return
        raise ValueError(f"{path} exists; pass --force to replace it")
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise ValueError(f"{path} cannot be written: {parent} is not a folder one may write to")


@contextmanager
def write_folder(path: Path, *, force: bool = False, own: Collection[str]) -> Iterator[Path]:
    """Give an empty folder to write to, which takes its place when the block ends well.

    Parameters
    ----------
    path : Path
        Where the folder will be; folders above it are made.
    force : bool, default=False
        Whether to replace an earlier one.
    own : collection of str
        The names that may be in it; see :func:`check_output`.

    Yields
    ------
    Path
        The folder to write to.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesknn.report.folder import write_folder
    >>> with tempfile.TemporaryDirectory() as place:
    ...     out = pathlib.Path(place) / "deep" / "out"
    ...     with write_folder(out, own={"a.txt"}) as folder:
    ...         _ = (folder / "a.txt").write_text("a")
    ...     [entry.name for entry in out.iterdir()]
    ['a.txt']
    """
    check_output(path, force, own)
    path = path.absolute()
    made = [parent for parent in (path.parent, *path.parent.parents) if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new = work / "new"
        new.mkdir()  # with the permissions of any new folder; those of `work` are private
        yield new
        if path.exists():
            path.rename(work / "old")
        new.rename(path)
    except BaseException:
        if (work / "old").exists() and not path.exists():
            (work / "old").rename(path)
        shutil.rmtree(work, ignore_errors=True)
        for parent in made:
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
        raise
    shutil.rmtree(work, ignore_errors=True)


def write_file(path: Path, content: str, *, force: bool = False) -> None:
    """Write a text file in one step.

    Parameters
    ----------
    path : Path
        Where the file will be; folders above it are made.
    content : str
        Its text.
    force : bool, default=False
        Whether to replace an earlier one.
    """
    check_output(path, force)
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(content, encoding="utf-8", newline="")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
