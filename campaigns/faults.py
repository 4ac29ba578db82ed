"""Kills, interrupts, full disks and concurrent runs of a fit: ``python -m campaigns faults``.

The files that remain are compared with those of an uninterrupted run, which must be equal bit for
bit. Each attempt is a forked child of a process that has everything imported and compiled. An audit
hook counts the file operations of the child in its folder, and at one of them kills the child or
raises the error of a full disk. Other kills and interrupts come at random times. A limit on the
size of files imitates a disk that becomes full while a file is written. No attempt needs root.
"""

from __future__ import annotations

import errno
import itertools
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_EVENTS = ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.link", "os.truncate")
# Events that fail on a full disk. Removing files still works.
_NEED_SPACE = ("open", "os.rename", "os.mkdir", "os.link")
_OPTIONS = ("--model", "pseudo", "--max-neighbors", "6", "--draws", "100", "--no-compare")
# Limits of file size in bytes, from 0 to more than the largest file of a result.
_SIZES = (0, 1, 3_000, 4_097, 30_000, 60_000, 120_000, 200_000, 10_000_000)


class Trouble:
    """Audit hook of a child that calls ``act`` at the ``at``-th file event in its folder."""

    def __init__(self, act: Callable[[], None] | None = None, at: int = -1):
        self.act, self.at, self.n_events = act, at, 0
        self.reading, self.writing = os.pipe()

    def wait(self) -> None:
        """Wait for the first event of a child, or for its end."""
        os.close(self.writing)
        os.read(self.reading, 1)

    def watch(self, folder: Path) -> None:
        """Add the hook to this process; Python cannot remove it again."""
        prefix = str(folder)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in _EVENTS or not str(arguments[0]).startswith(prefix):
                return
            if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
                return
            self.n_events += 1
            if self.n_events == 1:
                os.write(self.writing, b"1")
            if self.act is fill_disk and event not in _NEED_SPACE:
                return
            if self.act is not None and self.n_events == self.at:
                self.act()

        sys.addaudithook(hook)


def kill() -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def fill_disk() -> None:
    """Raise the OSError of a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


def start(work: Callable[[], int], log: Path, trouble: Trouble, folder: Path) -> int:
    """Fork a child that runs ``work`` with its output in ``log``; return its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        with open(log, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        trouble.watch(folder)
        code = work()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def finish(child: int) -> int:
    """Wait for a child; return its exit code, or minus the number of the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class FitFaults:
    """Attempts to break ``bayesknn fit``.

    After each attempt there must be all files or none, any earlier result must be intact, and no
    temporary files may remain.
    """

    def __init__(self, folder: Path, rng: np.random.Generator):
        from tests.report.tables import two_columns

        from bayesknn.report import page

        # A fixed page replaces the report, which takes most of the time and does not affect how
        # files are written.
        page.render_report = lambda *_, **__: f"<html>{30_000 * 'a'}</html>\n"
        self.folder, self.rng = folder, rng
        self.faults: list[str] = []
        self.moments: Counter[str] = Counter()
        self.log = folder.parent / "log"
        self.table = folder.parent / "t.csv"
        two_columns(30).to_csv(self.table, index=False)
        self.out = folder / "out"
        # These two fits also import and compile everything for the children.
        self.old = self._reference("--seed", "1")
        began = time.monotonic()
        self.new = self._reference("--force")
        self.seconds = time.monotonic() - began

    def fit(self, *options: str) -> int:
        """Fit in this process; return the exit code."""
        from bayesknn.cli import main

        words = ["fit", str(self.table), "--target", "y", "--out", str(self.out)]
        try:
            main([*words, *_OPTIONS, "--quiet", *options], prog_name="bayesknn")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(bool(end.code))
        return 0

    def _reference(self, *options: str) -> dict[str, bytes]:
        assert self.fit(*options) == 0
        return self.read()

    def read(self) -> dict[str, bytes]:
        """Return the files of the result by name, with predictions in place of the model file."""
        from bayesknn.model_file.predictions import predict_new, write_csv
        from bayesknn.report import load_model, read_table

        if not self.out.exists():
            return {}
        files = {entry.name: entry.read_bytes() for entry in self.out.iterdir()}
        # Equal models have different files, because their entries are named by memory addresses. So
        # their predictions are compared.
        if files.pop("model.skops", None) is not None:
            model = load_model(self.out)
            files["model"] = write_csv(predict_new(model, read_table(self.table), 0.95)).encode()
        return files

    def begin(self, earlier: bool) -> None:
        """Empty the folder, and write an earlier result to it if ``earlier`` is true."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        if earlier:
            assert self.fit("--seed", "1") == 0

    def check(self, name: str, code: int, codes: tuple[int, ...], earlier: bool) -> None:
        """Check the files after an attempt, fit again without disturbance, and check the result.

        Faults are appended to ``faults``. ``code`` is the exit code of the child, ``codes`` are the
        allowed exit codes, and ``earlier`` is whether there was an earlier result.
        """
        output = self.log.read_text(errors="replace").strip()
        self.moments[name] += 1
        where = f"{name} ({'earlier result' if earlier else 'no result'}): exit code {code}"
        if code not in codes or "Traceback" in output:
            self.faults.append(f"{where}: {output[-300:]}")
        entries = sorted(entry.name for entry in self.folder.iterdir())
        files = self.read()
        before = self.old if earlier else {}
        allowed = [self.new] if code == 0 else [before, self.new] if code < 0 else [before]
        swapping = code < 0 and not files and (self.folder / ".out.partial" / "old").exists()
        if files not in allowed and not swapping:
            self.faults.append(f"{where}: a result that is neither old nor new: {sorted(files)}")
        if code >= 0 and entries not in ([], ["out"]):
            self.faults.append(f"{where}: left behind: {entries}")
        if code > 0 and len(output.splitlines()) != 1:
            self.faults.append(f"{where}: other than one line of output: {output[-300:]}")
        again = self.fit("--force")
        if again != 0 or self.read() != self.new or [*self.folder.iterdir()] != [self.out]:
            self.faults.append(f"{where}: a second fit (exit code {again}) has another result")

    def kill_at_events(self, n: int) -> None:
        """Kill n children, each at a random one of the file events of a complete run."""
        n_events = self.count_events()
        for at in np.sort(self.rng.choice(n_events, n, replace=n > n_events)) + 1:
            earlier = bool(self.rng.integers(2))
            self.begin(earlier)
            child = start(
                lambda: self.fit("--force"), self.log, Trouble(kill, int(at)), self.folder
            )
            self.check("kills of fit while writing", finish(child), (-signal.SIGKILL, 0), earlier)

    def count_events(self) -> int:
        """Return the number of file events of a complete run, counted in a separate child."""
        self.begin(True)
        trouble = Trouble()

        def work() -> int:
            code = self.fit("--force")
            print(f"events {trouble.n_events}")
            return code

        assert finish(start(work, self.log, trouble, self.folder)) == 0, self.log.read_text()
        return int(self.log.read_text().split()[-1])

    def signal_at_times(self, name: str, number: int, n: int) -> None:
        """Send a signal to n children at random times, up to 1.1 times the time of a run."""
        codes = (-signal.SIGKILL, 0) if number == signal.SIGKILL else (130, 0)
        for _ in range(n):
            earlier = bool(self.rng.integers(2))
            self.begin(earlier)
            trouble = Trouble()
            child = start(lambda: self.fit("--force"), self.log, trouble, self.folder)
            # Before the first file event there are no files to damage.
            trouble.wait()
            time.sleep(self.rng.random() * 1.1 * self.seconds)
            os.kill(child, number)
            self.check(name, finish(child), codes, earlier)

    def fill_at_events(self) -> None:
        """Raise the error of a full disk at each event in turn, until a run has fewer events."""
        for at in itertools.count(1):
            earlier = at % 2 == 1
            self.begin(earlier)
            child = start(
                lambda: self.fit("--force"), self.log, Trouble(fill_disk, at), self.folder
            )
            code = finish(child)
            if code == 0 and at > self.n_openings:
                return
            self.check("full disks when a file is opened", code, (0, 1), earlier)

    n_openings = 12

    def fill_at_sizes(self, sizes: tuple[int, ...] = _SIZES) -> None:
        """Limit the size of files to each of some sizes in turn."""
        for size in sizes:
            self.begin(True)

            def work(size: int = size) -> int:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
                return self.fit("--force")

            # The limit would also apply to the log, so the output goes through a pipe.
            child = start(lambda: self._through_pipe(work), self.log, Trouble(), self.folder)
            self.check("full disks within a file", finish(child), (0, 1), True)

    def _through_pipe(self, work: Callable[[], int]) -> int:
        """Run ``work`` in a grandchild, whose output the child prints; return its exit code."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            os._exit(work())
        os.close(writing)
        with os.fdopen(reading) as output:
            print(output.read(), end="")
        return finish(child)

    def two_at_once(self, n: int) -> None:
        """Start two fits at once, n times, and record faults.

        One fit must complete. The second may complete, or exit with an error about the first.
        """
        for _ in range(n):
            self.begin(False)
            logs = [self.log, self.log.with_suffix(".other")]
            children = [
                start(lambda: self.fit("--force"), log, Trouble(), self.folder) for log in logs
            ]
            codes = [finish(child) for child in children]
            outputs = [log.read_text() for log in logs]
            for code, output in zip(codes, outputs, strict=True):
                if code != 0 and not (code == 2 and "another process is writing" in output):
                    self.faults.append(f"two at once: exit code {code}: {output[-300:]}")
            if 0 not in codes or self.read() != self.new:
                self.faults.append(f"two at once: exit codes {codes} and a wrong result")
            self.moments["pairs at once"] += 1


def run(
    seed: int = 0, fraction: float = 1.0, show: Callable[[str], None] = print
) -> dict[str, Any]:
    """Run all attempts, or a fraction of them; return their numbers by kind, and the faults."""
    rng = np.random.default_rng(seed)
    n = max(round(25 * fraction), 1)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        (Path(folder) / "fit").mkdir()
        fits = FitFaults(Path(folder) / "fit", rng)
        sizes = _SIZES if fraction == 1 else _SIZES[2:5:2]
        for work in (
            lambda: fits.kill_at_events(n),
            lambda: fits.signal_at_times("kills of fit at any time", signal.SIGKILL, n),
            lambda: fits.signal_at_times("interrupts of fit", signal.SIGINT, n),
            lambda: fits.fill_at_sizes(sizes),
            lambda: fits.two_at_once(max(n // 5, 1)),
            *([fits.fill_at_events] if fraction == 1 else []),
        ):
            work()
            show(f"{dict(fits.moments)}; faults: {fits.faults or 'none'}")
    return {"seed": seed, "moments": dict(fits.moments), "faults": sorted(set(fits.faults))}
