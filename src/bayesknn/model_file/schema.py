"""Checks of a model file before anything in it is built.

A model file is a zip archive, as skops writes it: ``schema.json`` describes a tree of objects, and
every other member is an array that nodes of the tree refer to. skops builds about 200 estimators
of scikit-learn without being asked; a model of ours holds one type of object, ``TableModel``, and
dictionaries of its parts.
"""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

_SCALARS = ("bool", "bool_", "float32", "float64", "int32", "int64", "str_")
_PLAIN = ("builtins.bool", "builtins.float", "builtins.int", "builtins.str")
# The types of objects in a model, by the loader of skops that builds them. Plain values (JSON) are
# of any type.
_TYPES: dict[str, tuple[str, ...]] = {
    "ObjectNode": ("bayesknn.model_file.table_model.TableModel",),
    "DictNode": ("builtins.dict",),
    "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",),
    "JsonNode": ("builtins.str",),
    "SliceNode": ("builtins.slice",),
    # Types of the keys of dictionaries.
    "TypeNode": (*_PLAIN, *(f"numpy.{name}" for name in _SCALARS)),
    "NdArrayNode": ("numpy.ndarray", *(f"numpy.{name}" for name in _SCALARS)),
}
# What skops is told to trust in addition to the types that it trusts by itself.
TRUSTED = [*_TYPES["ObjectNode"]]
# What files of format 2 and before hold.
_FORMER = "bayesknn.report.model.Model"


def seal(archive: zipfile.ZipFile) -> bytes:
    """Return a digest of the members by name, length and checksum: it shows damage, not malice."""
    members = sorted((each.filename, each.file_size, each.CRC) for each in archive.infolist())
    return hashlib.sha256(repr(members).encode()).hexdigest().encode()


def check_file(path: Path, trusted: Collection[str] = ()) -> None:
    """Raise ValueError if a file holds anything that no model of ours has.

    Parameters
    ----------
    path : Path
    trusted : collection of str
        Names of other types that it may hold.
    """
    with zipfile.ZipFile(path) as archive:
        _check_members(archive, path.stat().st_size)
        schema = _Schema(trusted)
        schema.count(json.loads(archive.read("schema.json")))
        if schema.unknown:
            named = ", ".join(sorted(schema.unknown))
            raise ValueError(
                f"it holds {named}, a type that no model of ours has: pass "
                "trusted=[...] with its name to load_model if you trust the author of the file"
            )
        if archive.comment != seal(archive):
            raise ValueError(
                "it does not hold a model that bayesknn fit wrote, or was damaged since"
            )


def _check_members(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Raise ValueError if a member is longer than it should be, before it is read into memory.

    The schema is text that grows with the number of parts, not of rows; every other member is an
    array, whose header gives its length.
    """
    from numpy.lib import format

    members = archive.infolist()
    if sum(member.file_size for member in members) > 100 * n_bytes:
        raise ValueError("it unpacks to far more than it holds")
    for member in members:
        if member.filename == "schema.json":
            # Ten times that of a model of 20,000 categories and classes.
            fits = member.file_size <= 50_000_000
        else:
            with archive.open(member) as file:
                format.read_magic(file)
                shape, _, dtype = format.read_array_header_1_0(file)
                fits = member.file_size == file.tell() + math.prod(shape) * dtype.itemsize
        if not fits:
            raise ValueError(f"its member {member.filename!r} is longer than it should be")


class _Schema:
    """A count of the nodes of a schema, in which no node stands for more than its text.

    skops builds one object of all nodes with one number, the first of them. The others must have as
    many nodes: ten references to a list of ten references would otherwise be a hundred parts. A
    member of the archive belongs to one number.
    """

    def __init__(self, trusted: Collection[str] = ()) -> None:
        self.trusted, self.unknown = frozenset(trusted), set[str]()
        self.n_nodes: dict[int | float | str, int] = {}
        self.readers: dict[str, Any] = {}

    def count(self, part: Any) -> int:
        """Return how many nodes a part has; raise ValueError for one that no model of ours has."""
        if isinstance(part, list):
            return sum(map(self.count, part))
        if not isinstance(part, dict):
            return 0
        n_nodes = sum(map(self.count, part.values()))
        if isinstance(loader := part.get("__loader__"), str):
            called = f"{part.get('__module__')}.{part.get('__class__')}"
            if called == _FORMER:
                raise ValueError("it was written in format 2 by an earlier bayesknn: fit it again")
            if called not in _TYPES.get(loader, ()) and called not in self.trusted:
                self.unknown.add(called)
            n_nodes += 1
        # They are dictionaries if they stand for columns that have these names.
        number, member = part.get("__id__"), part.get("file")
        if isinstance(number, int | float | str):
            if self.n_nodes.setdefault(number, n_nodes) != n_nodes:
                raise ValueError("two different parts of its schema have one number")
        if isinstance(member, str):
            if number is None or self.readers.setdefault(member, number) != number:
                raise ValueError(f"several parts of its schema read its member {member!r}")
        return n_nodes
