"""What a run has finished, kept in its folder so that the next run goes on from there.

Everything is stamped with the version, the budget and the seed; what bears another stamp counts
as not there. Files are written under another name first, so that a file that exists is whole.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bayesknn._version import __version__
from bayesknn.paper.budget import Budget

WORK = "paper-work"


class Store:
    """The folder of a run.

    Parameters
    ----------
    folder : Path or None
        ``None`` keeps everything in memory.
    budget : Budget
    seed : int
    """

    def __init__(self, folder: Path | None, budget: Budget, seed: int):
        self.folder = folder
        self.stamp: dict[str, Any] = {
            "version": __version__,
            "budget": budget.name,
            # What the name stands for may change between versions under development.
            "numbers": f"{zlib.crc32(repr(budget).encode()):08x}",
            "seed": seed,
        }
        self._arrays: dict[str, dict[str, np.ndarray]] = {}

    def keep(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, np.ndarray]:
        """Return the arrays kept under a name, made now if they are not there."""
        if name not in self._arrays:
            found = self._load_arrays(name)
            if found is None:
                found = {key: np.asarray(value) for key, value in make().items()}
                self._save_arrays(name, found)
            self._arrays[name] = found
        return self._arrays[name]

    def load_result(self, slug: str) -> dict[str, Any] | None:
        """Return what was kept of a finished item, or None."""
        if self.folder is None:
            return None
        try:
            kept = json.loads((self.folder / WORK / f"{slug}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(kept, dict) or kept.get("stamp") != self.stamp:
            return None
        return kept if all((self.folder / path).is_file() for path in kept["figures"]) else None

    def save_result(self, slug: str, kept: dict[str, Any]) -> None:
        """Keep a finished item."""
        if self.folder is not None:
            text = json.dumps({"stamp": self.stamp, **kept}, indent=1)
            self.write(f"{WORK}/{slug}.json", text.encode())

    def forget(self, slugs: list[str]) -> None:
        """Delete what was kept of some items, and all samples, which they may share."""
        if self.folder is not None:
            work = self.folder / WORK
            for path in [work / f"{slug}.json" for slug in slugs] + list(work.glob("*.npz")):
                path.unlink(missing_ok=True)

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the folder, whole or not at all."""
        assert self.folder is not None
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(content)
        os.replace(part, path)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / WORK / f"{name}.npz"

    def _load_arrays(self, name: str) -> dict[str, np.ndarray] | None:
        path = self._path(name)
        if path is None or not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in archive.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            return None
        stamp = str(arrays.pop("stamp", ""))
        return arrays if stamp == json.dumps(self.stamp) else None

    def _save_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        path = self._path(name)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with open(part, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, stamp=json.dumps(self.stamp), **arrays)
        os.replace(part, path)
