"""Deletion of cached kernels that were compiled from sources that have changed since.

numba recompiles a kernel only if the file that defines it has changed. But its machine code also
contains the functions that it calls, which may be in other modules. So before the tests and before
each mutant, the cached kernels of every module that imports a changed module, directly or
indirectly, are deleted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

# Import statements at the beginning of a line. Kernels cannot use imports inside functions.
_IMPORT = re.compile(r"^from bayesknn([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def forget_stale_kernels(package: Path) -> list[str]:
    """Delete the cached kernels of modules that are stale since the last call.

    Returns
    -------
    list of str
        Paths of these modules relative to the package.
    """
    record = package / "__pycache__" / "kernel-sources.json"
    known = json.loads(record.read_text()) if record.exists() else {}
    sources = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    imports = {
        path: _find_imports(package, text) & sources.keys() for path, text in sources.items()
    }
    digests, changed = {}, []
    for path in sorted(sources):
        name = str(path.relative_to(package))
        imported = sorted(_find_all_imports(path, imports))
        text = "".join(sources[source] for source in imported)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
        if known.get(name) != digests[name]:
            changed.append(name)
            for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb[ic]"):
                cached.unlink(missing_ok=True)
    record.parent.mkdir(exist_ok=True)
    # A new file replaces the record, because a mutant's copy of the package consists of hard links
    # and writing to the file would change the original.
    temporary = record.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(digests))
    temporary.replace(record)
    return changed


def _find_imports(package: Path, text: str) -> set[Path]:
    """Return the files that the text of a module may import; some of them may not exist."""
    files = set()
    for module, names in _IMPORT.findall(text):
        path = package.joinpath(*module.split("."))
        files |= {path.with_suffix(".py"), path / "__init__.py"}
        # An imported name may itself be a module.
        files |= {path / f"{name}.py" for name in re.findall(r"\w+", names)}
    return files


def _find_all_imports(path: Path, imports: dict[Path, set[Path]]) -> set[Path]:
    """Return a module and all modules that it imports, directly or indirectly."""
    modules, waiting = {path}, [path]
    while waiting:
        new = imports[waiting.pop()] - modules
        modules |= new
        waiting += new
    return modules
