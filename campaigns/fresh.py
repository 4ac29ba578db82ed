"""Run the tests in a fresh clone that differs from this machine: ``make fresh RECIPE=elsewhere``.

The clone is in a folder whose name has a space and a non-ASCII letter. If the current user is root,
it belongs to another user. A recipe adds further differences, such as other BLAS kernels, another
Python or the lowest versions of the dependencies; ``RECIPE=generic+reversed`` combines two. Each
test that fails is run again under one difference at a time, and the differences that make it fail
are printed. A clone contains committed changes only.

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
# Exit code of pytest if a named test does not exist.
UNKNOWN_TEST = 4


@dataclass(frozen=True)
class Difference:
    """A difference from a clone of the same user in a plain folder.

    A difference with ``make`` or ``python``, or of folder or user, needs a separate clone.

    Attributes
    ----------
    env : dict of str to str
        Environment variables.
    pytest : tuple of str
        Arguments of pytest.
    make : tuple of str
        Arguments of ``make setup``.
    python : str
        Version of Python, empty for the default one.
    """

    env: dict[str, str] = field(default_factory=dict)
    pytest: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    python: str = ""


DIFFERENCES = {
    "folder": Difference(),
    "user": Difference(),
    # OpenBLAS kernels for other processors have other rounding errors. Haswell and Zen are omitted
    # because numpy 2.5 crashes with them.
    "nehalem": Difference({"OPENBLAS_CORETYPE": "Nehalem"}),
    "prescott": Difference({"OPENBLAS_CORETYPE": "Prescott"}),
    # The value is set by Clones.call: all optional features of this processor that numpy uses.
    "no-avx": Difference({"NPY_DISABLE_CPU_FEATURES": ""}),
    "generic": Difference({"NUMBA_CPU_NAME": "generic"}),
    # numba's cache key ignores the bounds check, so these kernels need a separate cache.
    "bounds": Difference({"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": "bounds-kernels"}),
    "reversed": Difference(pytest=("-p", "campaigns.reversed_order")),
    "one-worker": Difference(pytest=("-n", "1")),
    "locale": Difference({"LC_ALL": ""}),
    "time-zone": Difference({"TZ": "CHAST-12:45CHADT-13:45,M9.5.0,M4.1.0"}),
    "hash-seed": Difference({"PYTHONHASHSEED": str(random.randrange(2**32))}),
    "umask": Difference(),
    # No user can create a file in /proc, not even root.
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
    """Return the names of the differences in a recipe, or in several joined by ``+``."""
    names = [name for word in text.split("+") for name in RECIPES.get(word, (word,))]
    unknown = set(names) - set(DIFFERENCES)
    if unknown:
        sys.exit(
            f"fresh: {', '.join(sorted(unknown))}: no such recipe or difference; recipes are "
            f"{', '.join(RECIPES)}, and differences are {', '.join(DIFFERENCES)}"
        )
    return (*ALWAYS, *dict.fromkeys(names))


def name_causes(
    failures: list[str], names: Iterable[str], run: Callable[[tuple[str, ...]], list[str]]
) -> dict[str, list[str]]:
    """Return the differences that make each test fail when applied one at a time.

    Parameters
    ----------
    failures : list of str
        Node ids of the failed tests.
    names : iterable of str
        Differences of the recipe.
    run : callable
        Function that runs these tests under given differences and returns the ids that fail.

    Returns
    -------
    dict of str to list of str
        Names of the differences for each test id. The list is ``["none"]`` if the test fails
        without any difference, and empty if it fails only under several together.
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
    """Clones of the project in a temporary folder, in which tests are run."""

    def __init__(self, folder: Path, commit: str):
        self.folder = folder
        self.commit = commit
        self.nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.made: dict[tuple, Path] = {}

    def run(self, names: tuple[str, ...], words: list[str], tests: list[str]) -> list[str]:
        """Run tests, by default all, under some differences; return the ids of those that fail."""
        clone = self.make(names)
        python = clone / ".venv" / "bin" / "python"
        options = [word for name in names for word in DIFFERENCES[name].pytest]
        failed = clone / ".pytest_cache" / "v" / "cache" / "lastfailed"
        failed.unlink(missing_ok=True)
        print(f"-- pytest with {', '.join(names) or 'no difference'}", flush=True)
        parallel = ("-n", "auto", "--dist", "worksteal")
        command = [python, "-m", "pytest", "-q", *parallel, *options, *words, *tests]
        code = self.call(command, clone, names)
        if code == UNKNOWN_TEST and tests:
            # pytest runs no test at all if one of the named tests does not exist with these
            # versions. So each test is run in a separate call.
            return [test for one in tests if tests[1:] for test in self.run(names, words, [one])]
        failures = sorted(json.loads(failed.read_text())) if failed.exists() else []
        if bool(code) != bool(failures):
            sys.exit(f"fresh: pytest ended with code {code}, but {len(failures)} tests failed")
        return failures

    def make(self, names: tuple[str, ...]) -> Path:
        """Return a clone with an environment, and make it if no earlier one has these differences.

        Clones differ only in folder, user and versions; other differences apply to calls.
        """
        key = tuple(
            name
            for name in names
            if name in ALWAYS or DIFFERENCES[name].make or DIFFERENCES[name].python
        )
        if key in self.made:
            return self.made[key]
        parent = self.folder / str(len(self.made))
        clone = parent / ("Nächste Nachbarn" if "folder" in names else "plain") / "bayesknn"
        clone.parent.mkdir(parents=True)
        subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
        # A commit made since the campaign began would otherwise be in later clones only.
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
        self.made[key] = clone
        return clone

    def link_python(self, version: str) -> None:
        """Put a Python of that version into the folder, where PATH of a clone finds it first.

        It is a link, or a copy if the other user may not run it, as with pyenv's below /root.
        """
        python = find_python(version)
        tools = self.folder / f"python{version}"
        if tools.exists():
            return
        query = [python, "-c", "import sys; print(sys.base_prefix)"]
        prefix = Path(subprocess.run(query, check=True, capture_output=True, text=True).stdout[:-1])
        if self.nobody is None or runs(python, user=self.nobody.pw_uid):
            tools.mkdir()
            (tools / "bin").symlink_to(prefix / "bin")
        else:
            print(f"-- copying {prefix}, which the other user may not read", flush=True)
            ignored = shutil.ignore_patterns("site-packages", "test", "__pycache__", "*.a")
            shutil.copytree(prefix, tools, symlinks=True, ignore=ignored)
            # Python expects this folder to exist.
            next(tools.glob("lib/python3*")).joinpath("site-packages").mkdir(exist_ok=True)

    def call(self, command: list, clone: Path, names: tuple[str, ...]) -> int:
        """Run a command in a clone as its owner, with the environment of these differences.

        Returns the exit code.
        """
        parent = clone.parents[1]
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "MAKE", "MFLAGS", "VIRTUAL_ENV", "PYENV", "XDG_"))
        }
        version = (clone / ".python-version").read_text().strip()
        tools = self.folder / f"python{version}"
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
        owner = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []} if other else {}
        umask = 0o077 if "umask" in names else 0o022
        return subprocess.run(
            command, cwd=clone, env=env, umask=umask, check=False, **owner
        ).returncode


def runs(python: str | Path, **user: int) -> bool:
    """Return whether an interpreter runs, as the current user or as ``user=UID``."""
    try:
        subprocess.run([python, "-c", ""], capture_output=True, check=True, **user)
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


def find_python(version: str) -> str:
    """Return the path of a Python interpreter of a version, from PATH or from pyenv."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in (shutil.which(name), *sorted(pyenv.glob(f"versions/{version}*/bin/{name}"))):
        # pyenv puts a shim on PATH for every version, including those that do not run here.
        if path and runs(path):
            return str(path)
    sys.exit(f"fresh: no Python {version} was found on PATH or in pyenv")


def find_locale(folder: Path) -> dict[str, str]:
    """Return environment variables of a Turkish locale, with decimal commas and a dotless i.

    The locale is compiled into the folder. If this machine cannot compile it, return locale C.
    """
    target = folder / "locales" / "tr_TR.UTF-8"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        command = ["localedef", "-i", "tr_TR", "-f", "UTF-8", target]
        if not shutil.which("localedef") or subprocess.run(command, check=False).returncode:
            print("-- this machine cannot make a Turkish locale; using C instead", flush=True)
            return {"LC_ALL": "C"}
    return {"LC_ALL": "tr_TR.UTF-8", "LOCPATH": str(target.parent)}


def find_features(clone: Path) -> str:
    """Return the optional features of this processor that numpy uses, separated by spaces."""
    code = """
import numpy
print(*numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
"""
    python = clone / ".venv" / "bin" / "python"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout


def main(recipe: str, *arguments: str) -> int:
    """Run the tests under a recipe and print the causes of failures; return 1 if a test fails."""
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
            print("-- the clone belongs to the current user, who is not root")
        clones.make(names)
        began = time.monotonic()
        failures = clones.run(names, list(arguments), [])
        print(f"-- {(time.monotonic() - began) / 60:.1f} minutes; {len(failures)} failures")
        if not failures:
            return 0
        options = [word for word in arguments if not (ROOT / word.partition("::")[0]).exists()]
        causes = name_causes(failures, names, lambda n: clones.run(n, options, failures))
    for test, differences in causes.items():
        text = ", ".join(differences)
        special = {"": "only under several differences", "none": "without any difference"}
        print(f"FAILED {test}: {special.get(text, text)}")
    return 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"fresh: name a recipe: {', '.join(RECIPES)}")
    sys.exit(main(*sys.argv[1:]))
