"""Single values in error messages: which one it was, and whether it is there at all."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


def show(value: Any) -> str:
    """Return one line that tells a reader which value it was.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn._values import show
    >>> show(np.float64(2.5)), show(np.zeros((2, 2)))
    ('2.5', 'an array of shape (2, 2)')
    """
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def refuse_lazy(X: Any, name: str = "X") -> None:
    """Refuse a frame that has not been read yet: it has neither rows nor a shape."""
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise ValueError(f"{name} is a {type(X).__name__}; pass {name}.collect()")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or what NumPy and pandas call NA and NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def refuse_missing(value: str, row: int, label: str | int) -> NoReturn:
    """Raise the error for a value that is not there, or not finite."""
    raise ValueError(
        f"X has {value} in row {row}, column {label!r}; remove the row or fill in the value"
    )
