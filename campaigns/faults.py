"""Kills, interrupts, full disks and two at once: ``python -m campaigns faults``.

What is left is compared with an uninterrupted run bit for bit. Each attempt is a child of a process
that has everything imported and compiled. An audit hook counts what the child does to files in its
folder, and kills it or fills the disk at one of these events; other kills and interrupts come at
random times, and files that may not grow beyond a size stand for a disk that fills up within one.
Nothing of it needs another user than the one who runs it.
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
# Where there is no room files can still be removed.
_NEED_ROOM = ("open", "os.rename", "os.mkdir", "os.link")
FULL = "No space left"
TOO_LARGE = "File too large"
_OPTIONS = ("--model", "pseudo", "--max-neighbors", "6", "--draws", "100", "--no-compare")
# Bytes that no file may exceed: from nothing to more than the largest of them.
_SIZES = (0, 1, 3_000, 4_097, 30_000, 60_000, 120_000, 200_000, 10_000_000)


class Trouble:
    """What happens to a child: called by the audit hook at every event in its folder."""

    def __init__(self, act: Callable[[], None] | None = None, at: int = -1):
        self.act, self.at, self.n_events = act, at, 0
        self.reading, self.writing = os.pipe()

    def wait(self) -> None:
        """Wait for the first event of a child, or for its end."""
        os.close(self.writing)
        os.read(self.reading, 1)

    def watch(self, folder: Path) -> None:
        """Listen to the events of this process, for as long as it lives."""
        place = str(folder)

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in _EVENTS or not str(arguments[0]).startswith(place):
                return
            if event == "open" and not (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
                return
            self.n_events += 1
            if self.n_events == 1:
                os.write(self.writing, b"1")
            if self.act is fill_disk and event not in _NEED_ROOM:
                return
            if self.act is not None and self.n_events == self.at:
                self.act()

        sys.addaudithook(hook)


def kill() -> None:
    """End this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def fill_disk() -> None:
    """Fail as a write does that finds no room."""
    raise OSError(errno.ENOSPC, "No space left on device")


def start(work: Callable[[], int], log: Path, trouble: Trouble, folder: Path) -> int:
    """Run something in a child; return its process number."""
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
    """Wait for a child; return its exit code, negative for the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class FitFaults:
    """``bayesknn fit`` in trouble: all files or none, an earlier result intact, no leftovers."""

    def __init__(self, folder: Path, rng: np.random.Generator):
        from tests.report.tables import two_columns

        from bayesknn.report import page

        # To draw it is most of the time, and no matter of files.
        page.render_report = lambda *_, **__: f"<html>{30_000 * 'a'}</html>\n"
        self.folder, self.rng = folder, rng
        self.faults: list[str] = []
        self.moments: Counter[str] = Counter()
        self.log = folder.parent / "log"
        self.table = folder.parent / "t.csv"
        two_columns(30).to_csv(self.table, index=False)
        self.out = folder / "out"
        # Compiled and imported once, for all children.
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
        """Return what is in the folder of the result, and what its model says."""
        from bayesknn.model_file.predictions import predict_new, write_csv
        from bayesknn.report import load_model, read_table

        if not self.out.exists():
            return {}
        found = {entry.name: entry.read_bytes() for entry in self.out.iterdir()}
        # Members of a saved model are named by addresses in memory: it is judged by what it says.
        if found.pop("model.skops", None) is not None:
            model = load_model(self.out)
            found["model"] = write_csv(predict_new(model, read_table(self.table), 0.95)).encode()
        return found

    def begin(self, earlier: bool) -> None:
        """Empty the folder, but for an earlier result if there is to be one."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        if earlier:
            assert self.fit("--seed", "1") == 0

    def check(self, name: str, code: int, codes: tuple[int, ...], earlier: bool) -> None:
        """Judge what a child has left, then let it be done again in peace."""
        told = self.log.read_text(errors="replace").strip()
        self.moments[name] += 1
        where = f"{name} ({'earlier result' if earlier else 'no result'}): exit code {code}"
        if code not in codes or "Traceback" in told:
            self.faults.append(f"{where}: {told[-300:]}")
        left = sorted(entry.name for entry in self.folder.iterdir())
        found = self.read()
        before = self.old if earlier else {}
        wanted = [self.new] if code == 0 else [before, self.new] if code < 0 else [before]
        swapping = code < 0 and not found and (self.folder / ".out.partial" / "old").exists()
        if found not in wanted and not swapping:
            self.faults.append(f"{where}: a result that is neither old nor new: {sorted(found)}")
        if code >= 0 and left not in ([], ["out"]):
            self.faults.append(f"{where}: left behind: {left}")
        if code > 0 and len(told.splitlines()) != 1:
            self.faults.append(f"{where}: other than one line: {told[-300:]}")
        again = self.fit("--force")
        if again != 0 or self.read() != self.new or [*self.folder.iterdir()] != [self.out]:
            self.faults.append(f"{where}: done again with {again}, it is not what it should be")

    def kill_at_events(self, n: int) -> None:
        """Kill at random ones of the events that a whole run has."""
        n_events = self.count_events()
        for at in np.sort(self.rng.choice(n_events, n, replace=n > n_events)) + 1:
            earlier = bool(self.rng.integers(2))
            self.begin(earlier)
            child = start(
                lambda: self.fit("--force"), self.log, Trouble(kill, int(at)), self.folder
            )
            self.check("kills of fit as it writes", finish(child), (-signal.SIGKILL, 0), earlier)

    def count_events(self) -> int:
        """Count what a whole run does to files, in a child of its own."""
        self.begin(True)
        trouble = Trouble()

        def work() -> int:
            code = self.fit("--force")
            print(f"events {trouble.n_events}")
            return code

        assert finish(start(work, self.log, trouble, self.folder)) == 0, self.log.read_text()
        return int(self.log.read_text().split()[-1])

    def signal_at_times(self, name: str, number: int, n: int) -> None:
        """Send a signal at random times, up to a little more than a whole run takes."""
        codes = (-signal.SIGKILL, 0) if number == signal.SIGKILL else (130, 0)
        for _ in range(n):
            earlier = bool(self.rng.integers(2))
            self.begin(earlier)
            trouble = Trouble()
            child = start(lambda: self.fit("--force"), self.log, trouble, self.folder)
            # Before it claims its place nothing is at stake.
            trouble.wait()
            time.sleep(self.rng.random() * 1.1 * self.seconds)
            os.kill(child, number)
            self.check(name, finish(child), codes, earlier)

    def fill_at_events(self) -> None:
        """Find no room at each event in turn, until a run meets none."""
        for at in itertools.count(1):
            earlier = at % 2 == 1
            self.begin(earlier)
            child = start(
                lambda: self.fit("--force"), self.log, Trouble(fill_disk, at), self.folder
            )
            code = finish(child)
            if code == 0 and at > self.n_openings:
                return
            self.check("full disks at a file's beginning", code, (0, 1), earlier)

    n_openings = 12

    def fill_at_sizes(self, sizes: tuple[int, ...] = _SIZES) -> None:
        """Let no file grow beyond each of some sizes."""
        for size in sizes:
            self.begin(True)

            def work(size: int = size) -> int:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
                return self.fit("--force")

            # What it has to say goes through a pipe of its own: the log may not grow either.
            child = start(lambda: self._through_pipe(work), self.log, Trouble(), self.folder)
            self.check("full disks within a file", finish(child), (0, 1), True)

    def _through_pipe(self, work: Callable[[], int]) -> int:
        """Run in a child of the child, whose words are written down by the child."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            os._exit(work())
        os.close(writing)
        with os.fdopen(reading) as words:
            print(words.read(), end="")
        return finish(child)

    def two_at_once(self, n: int) -> None:
        """Start two at a time: one is done, and the other is, or is told of the first."""
        for _ in range(n):
            self.begin(False)
            logs = [self.log, self.log.with_suffix(".other")]
            children = [
                start(lambda: self.fit("--force"), log, Trouble(), self.folder) for log in logs
            ]
            codes = [finish(child) for child in children]
            told = [log.read_text() for log in logs]
            for code, words in zip(codes, told, strict=True):
                if code != 0 and not (code == 2 and "another process is writing" in words):
                    self.faults.append(f"two at once: {code}: {words[-300:]}")
            if 0 not in codes or self.read() != self.new:
                self.faults.append(f"two at once: {codes}, and not the result")
            self.moments["pairs at once"] += 1


def run(seed: int = 0, share: float = 1.0, show: Callable[[str], None] = print) -> dict[str, Any]:
    """Run all of it, or a share; return how often what happened, and the faults."""
    rng = np.random.default_rng(seed)
    few = max(round(25 * share), 1)
    with tempfile.TemporaryDirectory(prefix="faults-") as place:
        (Path(place) / "fit").mkdir()
        fits = FitFaults(Path(place) / "fit", rng)
        sizes = _SIZES if share == 1 else _SIZES[2:5:2]
        for work in (
            lambda: fits.kill_at_events(few),
            lambda: fits.signal_at_times("kills of fit at any time", signal.SIGKILL, few),
            lambda: fits.signal_at_times("interrupts of fit", signal.SIGINT, few),
            lambda: fits.fill_at_sizes(sizes),
            lambda: fits.two_at_once(max(few // 5, 1)),
            *([fits.fill_at_events] if share == 1 else []),
        ):
            work()
            show(f"{dict(fits.moments)}; faults: {fits.faults or 'none'}")
    return {"seed": seed, "moments": dict(fits.moments), "faults": sorted(set(fits.faults))}
