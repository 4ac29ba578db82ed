"""Install the built wheel in clean environments, without extras and with each, and use it there.

`make wheel-test` calls it. Environments are made one after another in the same place, so that
kernels are compiled once for each Python. A Python that is not on this machine is passed over
with a line that says so; with CI set that is a failure.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.12", "3.13", "3.14")
EXTRAS = ("", "posterior", "plot", "persist", "report", "cli", "excel", "distributed")


def find_python(uv: str, version: str) -> str | None:
    """Return an interpreter of a version: one that uv sees, or pyenv has."""
    found = subprocess.run(
        [uv, "python", "find", "--no-project", "--system", version],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode == 0:
        return found.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next((str(path) for path in sorted(pyenv.glob(f"versions/{version}*/bin/python"))), None)


def use_wheel(uv: str, python: str, wheel: Path, extra: str, place: Path) -> bool:
    """Install the wheel with an extra, and run what the extra promises."""
    shutil.rmtree(place / "venv", ignore_errors=True)
    shutil.rmtree(place / "work", ignore_errors=True)
    (place / "work").mkdir(parents=True)
    inside = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    name = f"{wheel}[{extra}]" if extra else str(wheel)
    install = [uv, "pip", "install", "--quiet", "--python", inside, "-c", ROOT / "constraints.txt"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {"NUMBA_CACHE_DIR": str(place / "cache"), "MPLBACKEND": "Agg"}
    for command in (
        [uv, "venv", "--quiet", "--python", python, place / "venv"],
        [*install, name],
        [inside, ROOT / ".ci" / "use_wheel.py", extra],
    ):
        ran = subprocess.run(command, cwd=place / "work", env=environment, check=False)
        if ran.returncode:
            return False
    return True


def main(uv: str, *chosen: str) -> None:
    """Build, install and use; ``chosen`` are Pythons, all of them by default."""
    uv = str(Path(shutil.which(uv) or uv).absolute())
    place = ROOT / "build" / "wheel-test"
    shutil.rmtree(place, ignore_errors=True)
    # The wheel is made from the source distribution, not from the checkout.
    subprocess.run([uv, "build", "--quiet", "--out-dir", place / "dist", ROOT], check=True)
    (wheel,) = (place / "dist").glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e3:.0f} kB")
    failed = []
    for version in chosen or PYTHONS:
        python = find_python(uv, version)
        if python is None:
            print(f"Python {version}: not on this machine, not tested")
            failed += [version] if os.environ.get("CI") else []
            continue
        for extra in EXTRAS:
            told = f"Python {version}, {f'extra {extra}' if extra else 'no extra'}"
            good = use_wheel(uv, python, wheel, extra, place / version)
            print(f"{told}: {'works' if good else 'FAILED'}", flush=True)
            failed += [] if good else [told]
        shutil.rmtree(place / version)
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
