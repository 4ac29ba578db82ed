"""Checkpoints of a run of chains: one npz file, replaced as a whole or not at all.

A file holds every draw so far, the state of each chain, and the run's identity: what it was made
of, part by part, so that a file is never continued with other data and a mistake is named. States
are named tuples of numbers and arrays, nested at will; they are stored as plain arrays, without
pickle, so that reading a file can run no code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayesknn._utils.saving import reading
from bayesknn._version import __version__

_FORMAT = "bayesknn chains 1"
_PARTS = {
    "algorithm": "is of another algorithm",
    "data": "is from another data set",
    "prior": "is for another prior",
    "settings": "was made with other settings",
    "keys": "was made with another random_state",
}


class Checkpoint(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    identity : dict of str to str
        The parts are ``algorithm``, ``data``, ``prior``, ``settings`` and ``keys``.
    n_done : int
        Iterations that every chain has made, warm-up included.
    states : list of tuple
        One state per chain; after reading, its leaves in order: see :func:`restore_state`.
    draws : dict of str to ndarray of shape (n_chains, n_done)
    """

    identity: dict[str, str]
    n_done: int
    states: list[Any]
    draws: dict[str, np.ndarray]


def write_checkpoint(path: str | os.PathLike, checkpoint: Checkpoint) -> None:
    """Write a file that is complete whenever it exists: to a new name first, then renamed."""
    path = Path(path)
    arrays: dict[str, Any] = {f"draws/{name}": values for name, values in checkpoint.draws.items()}
    for chain, state in enumerate(checkpoint.states):
        for place, leaf in enumerate(_leaves(state)):
            arrays[f"state/{chain}/{place}"] = leaf
    header = {
        "format": _FORMAT,
        "version": __version__,
        "identity": checkpoint.identity,
        "n_done": checkpoint.n_done,
    }
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
        _clear_unfinished(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _clear_unfinished(path: Path) -> None:
    """Remove what processes left that were killed while they wrote this checkpoint."""
    for entry in path.parent.iterdir():
        number = entry.name.removeprefix(f"{path.name}.").removesuffix(".tmp")
        if os.name != "posix" or entry.name != f"{path.name}.{number}.tmp" or not number.isdigit():
            continue
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            entry.unlink(missing_ok=True)
        except OSError:
            pass  # another user's


def read_checkpoint(path: str | os.PathLike) -> Checkpoint | None:
    """Read a file; None where there is none yet."""
    path = Path(path)
    if not path.exists():
        if not path.parent.is_dir():
            raise ValueError(f"checkpoint {path} cannot be written: {path.parent} is not a folder")
        return None
    try:
        # Opened here, because NumPy leaves a damaged archive open.
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        header = json.loads(str(arrays.pop("header")))
        version = header.get("version")
    except Exception as error:
        # A damaged archive raises whatever its first bad byte leads to.
        raise _refusal(path) from error
    with reading(f"checkpoint {path}", version):
        if header.get("format") != _FORMAT:
            raise _refusal(path)
        return _unfold(header, arrays)


def _refusal(path: Path) -> ValueError:
    return ValueError(
        f"{path} is not a checkpoint of this version of bayesknn, or it is damaged; remove it or "
        "pass another path"
    )


def _unfold(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Checkpoint:
    draws, leaves = {}, {}
    for name, values in arrays.items():
        kind, _, rest = name.partition("/")
        if kind == "draws":
            draws[rest] = values
        else:
            chain, place = rest.split("/")
            leaves[int(chain), int(place)] = values
    n_chains = 1 + max(chain for chain, _ in leaves)
    states = [
        tuple(leaves[key] for key in sorted(leaves) if key[0] == chain) for chain in range(n_chains)
    ]
    return Checkpoint(header["identity"], int(header["n_done"]), states, draws)


def check_identity(path: str | os.PathLike, found: dict[str, str], wanted: dict[str, str]) -> None:
    """Refuse a file that is not of this run, saying in which part it differs."""
    for part, verdict in _PARTS.items():
        if found.get(part) != wanted[part]:
            shown = part in ("algorithm", "settings")
            detail = f" ({found.get(part)}; now {wanted[part]})" if shown else ""
            raise ValueError(f"checkpoint {path} {verdict}{detail}; remove it or pass another path")


def restore_state(template: Any, leaves: Any) -> Any:
    """Put stored leaves into the shape, and the scalar types, of a state made afresh."""
    return _rebuild(template, iter(leaves))


def _leaves(state: Any) -> Iterator[np.ndarray]:
    if isinstance(state, tuple):
        for field in state:
            yield from _leaves(field)
    else:
        yield np.asarray(state)


def _rebuild(template: Any, leaves: Iterator[np.ndarray]) -> Any:
    if isinstance(template, tuple):
        return type(template)(*(_rebuild(field, leaves) for field in template))
    leaf = next(leaves)
    return leaf if isinstance(template, np.ndarray) else type(template)(leaf.item())
