"""Run the tests in a fresh clone that differs from this machine: ``make fresh RECIPE=elsewhere``.

The clone lies in a folder with a space and a letter beyond ASCII in its name, and belongs to
another user where this one is root. A recipe adds differences to that: other kernels of BLAS,
another Python, the lowest versions of every dependency and so on; ``RECIPE=generic+reversed`` puts
one together. Each failure is run again under one difference at a time, and the differences that
bring it about are named. What is not committed is not in a clone.

    python3 -m campaigns.fresh RECIPE [arguments of pytest]
"""

from __future__ import annotations

import json
import os
import pwd
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What pytest ends with where it does not find a test that was named.
UNKNOWN_TEST = 4


@dataclass(frozen=True)
class Difference:
    """What is otherwise than in a clone by the same user in a plain folder.

    Attributes
    ----------
    env : dict
        Variables of the environment.
    pytest : tuple of str
        Arguments of pytest.
    make : tuple of str
        Arguments of ``make setup``. Who has some, or another Python, folder or user, gets a clone
        and an environment of its own.
    python : str
        The version of Python.
    """

    env: dict[str, str] = field(default_factory=dict)
    pytest: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    python: str = ""


DIFFERENCES = {
    "folder": Difference(),
    "user": Difference(),
    # Other kernels of OpenBLAS round otherwise. Haswell and Zen are left out: numpy 2.5 ends there.
    "nehalem": Difference({"OPENBLAS_CORETYPE": "Nehalem"}),
    "prescott": Difference({"OPENBLAS_CORETYPE": "Prescott"}),
    # All that numpy finds here beyond what it needs; the list is made in the environment.
    "no-avx": Difference({"NPY_DISABLE_CPU_FEATURES": ""}),
    "generic": Difference({"NUMBA_CPU_NAME": "generic"}),
    # Not in numba's key: kernels with and without must not meet in one cache.
    "bounds": Difference({"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": "bounds-kernels"}),
    "reversed": Difference(pytest=("-p", "campaigns.reversed_order")),
    "one-worker": Difference(pytest=("-n", "1")),
    "locale": Difference({"LC_ALL": ""}),
    "time-zone": Difference({"TZ": "CHAST-12:45CHADT-13:45,M9.5.0,M4.1.0"}),
    "hash-seed": Difference({"PYTHONHASHSEED": str(random.randrange(2**32))}),
    "umask": Difference(),
    # Nobody can make a file there, not even root.
    "home": Difference({"HOME": "/proc"}),
    "python3.13": Difference(python="3.13"),
    "lowest": Difference(make=("VERSIONS=--resolution lowest-direct",)),
    "newest": Difference(make=("VERSIONS=--upgrade",)),
}
ALWAYS = ("folder", "user")
RECIPES = {
    "old": ("nehalem", "no-avx", "generic", "reversed", "python3.13"),
    "older": ("prescott", "no-avx"),
    "elsewhere": ("locale", "time-zone", "hash-seed", "umask", "home", "one-worker"),
    "bounds": ("bounds",),
    "lowest": ("lowest",),
    "newest": ("newest", "python3.13"),
}


def read_recipe(text: str) -> tuple[str, ...]:
    """Return the differences that a recipe names, or several joined by ``+``."""
    names = [name for word in text.split("+") for name in RECIPES.get(word, (word,))]
    unknown = set(names) - set(DIFFERENCES)
    if unknown:
        sys.exit(
            f"fresh: {', '.join(sorted(unknown))}: no such recipe or difference; there are "
            f"{', '.join(RECIPES)} and {', '.join(DIFFERENCES)}"
        )
    return (*ALWAYS, *dict.fromkeys(names))


def name_causes(
    failures: list[str], names: Iterable[str], run: Callable[[tuple[str, ...]], list[str]]
) -> dict[str, list[str]]:
    """Return for each failure the differences under which it fails alone.

    Parameters
    ----------
    failures : list of str
        Node ids of tests.
    names : iterable of str
        The differences of the recipe.
    run : callable
        Runs these tests under the differences given, and returns those that fail.

    Returns
    -------
    dict
        Of each test, the names; ``["none"]`` if it fails without any, empty if only together.
    """
    causes: dict[str, list[str]] = {test: [] for test in failures}
    for test in run(()):
        causes[test] = ["none"]
    for name in names:
        for test in run((name,)):
            if causes.get(test) != ["none"]:
                causes.setdefault(test, []).append(name)
    return causes


class Clones:
    """Clones of the project in a temporary folder, and the tests in them."""

    def __init__(self, place: Path, commit: str):
        self.place = place
        self.commit = commit
        self.nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.made: dict[tuple, Path] = {}

    def run(self, names: tuple[str, ...], words: list[str], tests: list[str]) -> list[str]:
        """Run tests, or all of them, under some differences; return the ids of those that fail."""
        clone = self.make(names)
        python = clone / ".venv" / "bin" / "python"
        own = [word for name in names for word in DIFFERENCES[name].pytest]
        failed = clone / ".pytest_cache" / "v" / "cache" / "lastfailed"
        failed.unlink(missing_ok=True)
        print(f"-- pytest with {', '.join(names) or 'no difference'}", flush=True)
        parallel = ("-n", "auto", "--dist", "worksteal")
        command = [python, "-m", "pytest", "-q", *parallel, *own, *words, *tests]
        code = self.call(command, clone, names)
        if code == UNKNOWN_TEST and tests:
            # Other versions have other tests, and one that is not there stops the rest.
            return [test for one in tests if tests[1:] for test in self.run(names, words, [one])]
        found = sorted(json.loads(failed.read_text())) if failed.exists() else []
        if bool(code) != bool(found):
            sys.exit(f"fresh: pytest ended with {code} and names {len(found)} failures")
        return found

    def make(self, names: tuple[str, ...]) -> Path:
        """Return a clone with an environment: a new one for another folder, user or versions."""
        own = tuple(
            name
            for name in names
            if name in ALWAYS or DIFFERENCES[name].make or DIFFERENCES[name].python
        )
        if own in self.made:
            return self.made[own]
        parent = self.place / str(len(self.made))
        clone = parent / ("Nächste Nachbarn" if "folder" in names else "plain") / "bayesknn"
        clone.parent.mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
        # Commits may have been made while tests ran.
        subprocess.run(["git", "-C", clone, "checkout", "--quiet", self.commit], check=True)
        version = (clone / ".python-version").read_text().strip()
        for name in names:
            version = DIFFERENCES[name].python or version
        (clone / ".python-version").write_text(f"{version}\n")
        other = self.nobody if "user" in names else None
        if other:
            for path in (parent, *parent.rglob("*")):
                os.chown(path, other.pw_uid, other.pw_gid, follow_symlinks=False)
        self.link_python(version)
        words = [word for name in names for word in DIFFERENCES[name].make]
        if self.call(["make", "--silent", "setup", *words], clone, names):
            sys.exit(f"fresh: make setup failed with {', '.join(names)}")
        self.made[own] = clone
        return clone

    def link_python(self, version: str) -> None:
        """Put a Python of that version where the path finds it first, for both users.

        One that the other may not run, such as pyenv's below /root, is copied.
        """
        found = find_python(version)
        tools = self.place / f"python{version}"
        if tools.exists():
            return
        where = [found, "-c", "import sys; print(sys.base_prefix)"]
        prefix = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout[:-1])
        if self.nobody is None or runs(found, user=self.nobody.pw_uid):
            tools.mkdir()
            (tools / "bin").symlink_to(prefix / "bin")
        else:
            print(f"-- {prefix} is copied: the other user may not read it", flush=True)
            without = shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a")
            shutil.copytree(prefix, tools, symlinks=True, ignore=without)
            # It looks for this folder.
            next(tools.glob("lib/python3*")).joinpath("site-packages").mkdir(exist_ok=True)

    def call(self, command: list, clone: Path, names: tuple[str, ...]) -> int:
        """Run a command in a clone as the user it belongs to, in the environment of a recipe."""
        parent = clone.parents[1]
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "MAKE", "MFLAGS", "VIRTUAL_ENV", "PYENV", "XDG_"))
        }
        version = (clone / ".python-version").read_text().strip()
        tools = self.place / f"python{version}"
        env["PATH"] = f"{tools / 'bin'}:{env['PATH']}"
        if (tools / "lib").exists():
            env["LD_LIBRARY_PATH"] = str(tools / "lib")
        env["TMPDIR"] = str(parent / "tmp")
        other = self.nobody if "user" in names else None
        if other:
            env |= {"HOME": str(parent / "home"), "USER": "nobody", "LOGNAME": "nobody"}
        for folder in ("tmp", "home"):
            (parent / folder).mkdir(exist_ok=True)
            if other:
                os.chown(parent / folder, other.pw_uid, other.pw_gid)
        for name in names:
            env |= DIFFERENCES[name].env
        if "locale" in names:
            env |= find_locale(parent)
        if "bounds" in names:
            env["NUMBA_CACHE_DIR"] = str(parent / "bounds-kernels")
        if "no-avx" in names and command[0] != "make":
            env["NPY_DISABLE_CPU_FEATURES"] = find_features(clone)
        who = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []} if other else {}
        umask = 0o077 if "umask" in names else 0o022
        return subprocess.run(
            command, cwd=clone, env=env, umask=umask, check=False, **who
        ).returncode


def runs(python: str | Path, **who: int) -> bool:
    """Tell whether an interpreter runs, for a user if one is named."""
    try:
        subprocess.run([python, "-c", ""], capture_output=True, check=True, **who)
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


def find_python(version: str) -> str:
    """Return an interpreter of a version: on the path, or of pyenv."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in (shutil.which(name), *sorted(pyenv.glob(f"versions/{version}*/bin/{name}"))):
        # A shim of pyenv is on the path even where it does not run.
        if path and runs(path):
            return str(path)
    sys.exit(f"fresh: there is no Python {version} on this machine")


def find_locale(place: Path) -> dict[str, str]:
    """Make a locale with decimal commas and two kinds of i, or say that there is none."""
    target = place / "locales" / "tr_TR.UTF-8"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        command = ["localedef", "-i", "tr_TR", "-f", "UTF-8", target]
        if not shutil.which("localedef") or subprocess.run(command, check=False).returncode:
            print("-- no Turkish locale can be made here: C in its place", flush=True)
            return {"LC_ALL": "C"}
    return {"LC_ALL": "tr_TR.UTF-8", "LOCPATH": str(target.parent)}


def find_features(clone: Path) -> str:
    """Return what numpy finds of this processor beyond what it needs."""
    code = """
import numpy
print(*numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
"""
    python = clone / ".venv" / "bin" / "python"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout


def main(recipe: str, *arguments: str) -> int:
    """Run a recipe; return 1 if a test fails under it."""
    os.umask(0o022)
    names = read_recipe(recipe)
    for git in (["log", "-1", "--format=%h %s"], ["status", "--short"]):
        subprocess.run(["git", "-C", ROOT, *git], check=True)
    git = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    commit = subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()
    for name in names:
        print("--", name, DIFFERENCES[name].env or "", flush=True)
    with tempfile.TemporaryDirectory(prefix="fresh-") as folder:
        Path(folder).chmod(0o755)
        clones = Clones(Path(folder), commit)
        if clones.nobody is None:
            print("-- this user is not root: the clone stays with them")
        clones.make(names)
        began = time.monotonic()
        failures = clones.run(names, list(arguments), [])
        print(f"-- {(time.monotonic() - began) / 60:.1f} minutes; {len(failures)} failures")
        if not failures:
            return 0
        few = [word for word in arguments if not (ROOT / word.partition("::")[0]).exists()]
        causes = name_causes(failures, names, lambda n: clones.run(n, few, failures))
    for test, found in causes.items():
        told = {"": "only together", "none": "without any difference"}
        print(f"FAILED {test}: {told.get(', '.join(found), ', '.join(found))}")
    return 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"fresh: name a recipe: {', '.join(RECIPES)}")
    sys.exit(main(*sys.argv[1:]))
