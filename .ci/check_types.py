"""Check that pyright knows the types of all public names of the installed wheel.

``make types`` calls it. Public names are those of docs/api.rst and, of the classes among them,
methods and attributes that do not start with an underscore. scikit-learn has no types: for its
base classes scikit-learn-stubs is installed next to the wheel.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "types"
NEEDED = ("pyright", "scikit-learn-stubs")


def list_names() -> Iterator[tuple[str, list[str]]]:
    """Yield each name of docs/api.rst, and where it and its base classes are defined."""
    text = (ROOT / "docs" / "api.rst").read_text()
    parts = re.split(r"^\.\. currentmodule:: (\S+)$", text, flags=re.MULTILINE)[1:]
    for module, names in zip(parts[::2], parts[1::2], strict=True):
        for name in re.findall(r"^   (\w+)$", names, flags=re.MULTILINE):
            found = getattr(import_module(module), name)
            classes = found.__mro__ if isinstance(found, type) else [found]
            own = [each for each in classes if each.__module__.startswith("bayesknn")]
            yield name, [f"{module}.{name}", *(f"{e.__module__}.{e.__qualname__}" for e in own)]


def check() -> None:
    """Print the public names whose type is unknown or ambiguous; exit with 1 if there are any."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        [*(sys.executable, "-m", "pyright", "--outputjson"),
         *("--verifytypes", "bayesknn", "--ignoreexternal")],
        capture_output=True, text=True, check=False, cwd=PLACE, env=os.environ | {"PATH": path},
    )  # fmt: skip
    found = json.loads(ran.stdout)["typeCompleteness"]
    wrong = {
        symbol["name"]: [each["message"].partition("\n")[0] for each in symbol["diagnostics"]]
        for symbol in found["symbols"]
        if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]
    }
    names = list(list_names())
    bad = {}
    for name, places in names:
        member = re.compile(rf"({'|'.join(map(re.escape, places))})(\.(__init__|[^_.][^.]*))?")
        if mine := {each: wrong[each] for each in wrong if member.fullmatch(each)}:
            bad[name] = mine
    for name, mine in bad.items():
        print(name)
        for each, why in mine.items():
            print(f"    {each}: {'; '.join(why) or 'partially unknown'}")
    print(f"{len(names) - len(bad)} of {len(names)} names of docs/api.rst have known types")
    print(f"{100 * found['completenessScore']:.1f} % of all symbols of the package have")
    sys.exit(bool(bad) or not found["symbols"])


def prepare(uv: str) -> Path:
    """Install the wheel and what the check needs, and return the Python that has them."""
    uv = str(Path(shutil.which(uv) or uv).absolute())
    shutil.rmtree(PLACE, ignore_errors=True)
    build = [uv, "build", "--quiet", "--wheel", "--python", sys.executable]
    subprocess.run([*build, "--out-dir", PLACE / "dist", ROOT], check=True)
    (wheel,) = (PLACE / "dist").glob("*.whl")
    inside = PLACE / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    venv = [uv, "venv", "--quiet", "--python", sys.executable, PLACE / "venv"]
    install = [uv, "pip", "install", "--quiet", "--python", inside, "-c", ROOT / "constraints.txt"]
    subprocess.run(venv, check=True)
    subprocess.run([*install, f"{wheel}[distributed,report]", *NEEDED], check=True)
    return inside


if __name__ == "__main__":
    if sys.argv[1:]:
        inside = prepare(sys.argv[1])
        sys.exit(subprocess.run([inside, __file__], cwd=PLACE, check=False).returncode)
    check()
