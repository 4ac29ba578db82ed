"""Compiled kernels whose sources have changed: numba looks at a kernel's own file alone.

Machine code holds the helpers that a kernel calls, and these may stand in other modules. Before
tests run, and before a mutant is tried, the cached code of every module goes that imports, directly
or not, what has changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

# What stands at the beginning of a line: imports inside functions do not reach a kernel.
_IMPORT = re.compile(r"^from bayesknn([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def forget_stale_kernels(package: Path) -> list[str]:
    """Delete what is cached of modules whose sources changed since the last call; name them."""
    record = package / "__pycache__" / "kernel-sources.json"
    known = json.loads(record.read_text()) if record.exists() else {}
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    imports = {
        path: _find_imports(package, text) & sources.keys() for path, text in sources.items()
    }
    digests, changed = {}, []
    for path in sorted(sources):
        name = str(path.relative_to(package))
        reached = sorted(_reach(path, imports))
        text = "".join(sources[source] for source in reached)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
        if known.get(name) != digests[name]:
            changed.append(name)
            for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"):
                cached.unlink(missing_ok=True)
    record.parent.mkdir(exist_ok=True)
    # Not written in place: a mutant's copy of the package is made of links.
    fresh = record.with_suffix(f".{os.getpid()}")
    fresh.write_text(json.dumps(digests))
    fresh.replace(record)
    return changed


def _find_imports(package: Path, text: str) -> set[Path]:
    """Files that a module may import; not all of them exist."""
    found = set()
    for module, names in _IMPORT.findall(text):
        home = package.joinpath(*module.split("."))
        found |= {home.with_suffix(".py"), home / "__init__.py"}
        # A name may be a module, too.
        found |= {home / f"{name}.py" for name in re.findall(r"\w+", names)}
    return found


def _reach(path: Path, imports: dict[Path, set[Path]]) -> set[Path]:
    found, waiting = {path}, [path]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting += new
    return found
