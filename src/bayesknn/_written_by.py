"""Which version of bayesknn wrote a saved model, posterior, checkpoint or table.

A newer version may have written what this one reads otherwise or not at all: what can be read is
read with a warning, and where it cannot the error says why.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bayesknn._version import __version__

_KEY = "_bayesknn_version"


@contextmanager
def reading(what: str, version: Any) -> Iterator[None]:
    """Warn if a newer version wrote what is read in the block, and name it if that fails.

    Parameters
    ----------
    what : str
        Subject of the sentence: "the model".
    version : str or None
        That wrote it; None of files from before versions were kept.

    Examples
    --------
    >>> from bayesknn._written_by import reading
    >>> with reading("the model", "999.1"):
    ...     raise KeyError("beta")
    Traceback (most recent call last):
    ...
    ValueError: the model was written by bayesknn 999.1, which is newer than this one (...), and ...
    """
    if version is None or _order(str(version)) <= _order(__version__):
        yield
        return
    told = f"{what} was written by bayesknn {version}, which is newer than this one ({__version__})"
    try:
        yield
    except Exception as error:
        raise ValueError(f"{told}, and cannot be read: update bayesknn") from error
    warnings.warn(f"{told}: update bayesknn, or trust no result blindly", stacklevel=4)


def _order(version: str) -> tuple[list[int], bool]:
    """Return what versions are sorted by: the numbers, and whether it is a release."""
    numbers, rest = re.fullmatch(r"([\d.]*)(.*)", version, re.DOTALL).groups()  # type: ignore[union-attr]
    return [int(number) for number in numbers.split(".") if number], not rest


class VersionMixin:
    """An estimator whose saved state, by pickle or skops, says which version wrote it."""

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), _KEY: __version__}  # type: ignore[dict-item]

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        with reading(f"the {type(self).__name__}", state.pop(_KEY, None)):
            self._restore(state)

    def _restore(self, state: dict[str, Any]) -> None:
        """Take a state of this version over."""
        super().__setstate__(state)  # type: ignore[misc]
