"""What a fit leaves behind: output that is there whole or not at all.

Whoever will write to a place claims it before the work: a folder ``.NAME.partial`` beside it holds
a file that is locked as long as the process lives. What is finished in there is renamed into its
place at the end. A claim that a killed process left is known by its lock, which the system has let
go: the next claim takes it over and clears it, after putting back a result that was to be replaced
when the process died between the two renames.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shlex
import shutil
import signal
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bayesknn._utils.extras import is_installed, require

if TYPE_CHECKING:
    from bayesknn.report.analysis import Analysis

try:
    import fcntl
except ImportError:  # where there are no such locks two processes are not told apart
    fcntl = None  # type: ignore[assignment]

FILES = ("predictions.csv", "posterior.nc", "model.skops", "report.html")
# What makes them.
PACKAGES = ("pandas", "matplotlib", "jinja2", "skops", "xarray", "h5netcdf")


def require_packages(*names: str) -> None:
    """Say what to install, before any work is done, if some of it could not be done."""
    for name in names:
        if not is_installed(name):
            require(name, "this command needs", "plot" if name == "matplotlib" else "report")


def write_results(
    folder: Path, analysis: Analysis, out: Path, command: str, tables: Sequence[Path]
) -> None:
    """Render the report of a fit, and write its files to a folder; a pool has no posterior.

    Parameters
    ----------
    folder : Path
        It exists.
    analysis : Analysis
    out : Path
        Where the folder will be.
    command : str
        The command that does it again.
    tables : sequence of Path
        The training table, and others that were read.
    """
    from bayesknn.model_file.predictions import write_csv
    from bayesknn.model_file.saved import save_model
    from bayesknn.posterior.trees import save_posterior
    from bayesknn.report.page import render_report

    csv, posterior, model, report = (folder / name for name in FILES)
    new, saved = ["NEW.csv", "--out", "predictions.csv"], (out / model.name).as_posix()
    page = render_report(
        analysis,
        source=tables[0].name,
        command=command,
        files={path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tables},
        predict_command=shlex.join(["bayesknn", "predict", saved, *new]),
    )
    csv.write_text(write_csv(analysis.predictions), encoding="utf-8", newline="")
    if hasattr(analysis.classifier, "posterior_"):
        save_posterior(analysis.classifier.posterior_, posterior)
    save_model(analysis.model, model)
    report.write_text(page, encoding="utf-8", newline="")


def check_output(path: Path, force: bool, own: Collection[str] = ()) -> None:
    """Refuse, before any work is done, a place that may not be written to.

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
    if not path.exists():
        return
    if path.is_dir() != bool(own):
        raise ValueError(f"{path} is {'a folder' if path.is_dir() else 'not a folder'}")
    names = sorted(os.listdir(path)) if own else [path.name]
    if own and (strange := [name for name in names if name not in own]):
        raise ValueError(
            f"{path} holds {strange[0]!r}, which is not a file of this command; pass another "
            "folder as --out"
        )
    if names and not force:
        raise ValueError(f"{path} exists; pass --force to replace it")


@contextmanager
def write_folder(path: Path, *, force: bool = False, own: Collection[str]) -> Iterator[Path]:
    """Claim a place, and give an empty folder that takes it when the block ends well.

    Parameters
    ----------
    path : Path
        Where the folder will be; folders above it are made. A link stays: what it points to is
        written.
    force : bool, default=False
        Whether to replace an earlier one.
    own : collection of str
        The names that may be in it; see :func:`check_output`.

    Yields
    ------
    Path
        The folder to write to.
    """
    with _claim(path, force, own) as (place, work):
        new, old = work / "new", work / "old"
        new.mkdir()  # with the permissions of any new folder
        yield new
        with _too_late_for_interrupts():
            try:
                if place.exists():
                    place.rename(old)
                new.rename(place)
            except BaseException:
                _put_back(old, place)
                raise


@contextmanager
def write_file(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Claim a place, and give a file name to write to that takes it when the block ends well.

    Parameters
    ----------
    path : Path
        Where the file will be; folders above it are made. A link stays: what it points to is
        written.
    force : bool, default=False
        Whether to replace an earlier one.

    Yields
    ------
    Path
        The file to write.
    """
    with _claim(path, force, ()) as (place, work):
        yield work / "new"
        (work / "new").replace(place)


@contextmanager
def _claim(path: Path, force: bool, own: Collection[str]) -> Iterator[tuple[Path, Path]]:
    """Lock a place; yield it with links resolved, and the folder beside it to work in."""
    place = Path(os.path.realpath(path))
    if place.is_mount():
        raise ValueError(f"{path} is where a disk is mounted; name a folder in it")
    made = [parent for parent in place.parents if not parent.exists()]
    work = place.with_name(f".{place.name}.partial")
    lock = -1
    try:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            lock = _lock(work)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            reason = (error.strerror or type(error).__name__).lower()
            if isinstance(error, FileExistsError | NotADirectoryError):
                reason = "a file is in its way"
            raise ValueError(f"{path} cannot be written: {reason}") from None
        if lock < 0:
            raise ValueError(f"another process is writing to {path}; wait for it to end")
        _put_back(work / "old", place)
        for entry in work.iterdir():
            if entry.name != "lock":
                _remove(entry)
        check_output(path, force, own)
        yield place, work
    finally:
        with _too_late_for_interrupts():
            if lock >= 0:
                shutil.rmtree(work, ignore_errors=True)
                os.close(lock)
            for parent in made:
                try:
                    parent.rmdir()
                except OSError:
                    break


@contextmanager
def _too_late_for_interrupts() -> Iterator[None]:
    """Pass over Ctrl-C where it would leave a mess, or a result that is said not to be there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def _lock(work: Path) -> int:
    """Return the descriptor of the locked file in a claim, -1 if a living process has it."""
    while True:
        work.mkdir(exist_ok=True)
        try:
            lock = os.open(work / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # its owner has just ended and removed it
        except OSError:
            with suppress(OSError):
                work.rmdir()  # but for what another process has in it
            raise
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return -1
        except OSError:
            pass  # a file system without locks
        try:
            if os.path.samestat(os.fstat(lock), os.stat(work / "lock")):
                return lock
        except FileNotFoundError:
            pass
        os.close(lock)  # it was its owner's last moment: this lock is on a file that is gone


def _put_back(old: Path, place: Path) -> None:
    if old.exists() and not place.exists():
        old.rename(place)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()
