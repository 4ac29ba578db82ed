"""Forensic glass fragments (Section 4), with a random partition: the paper's was not published."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch, check_random_state

from bayesknn.datasets._files import Table, bunch, read_table

MERGED = {"WinF": "WinF", "WinNF": "WinNF", "Veh": "Veh", "Con": "Con+Tabl", "Tabl": "Con+Tabl"}
N_TRAIN = {"merged": 89, "raw": 103}

DESCR = """\
Forensic glass fragments
========================
214 fragments of glass in six classes: WinF (window float glass, 70), WinNF (window non-float
glass, 76), Veh (vehicle windows, 17), Con (containers, 13), Tabl (tableware, 9) and Head
(vehicle headlamps, 29).

Features: RI (refractive index, as 1000 times the excess over 1.518) and the percentages by
weight of the oxides of Na, Mg, Al, Si, K, Ca, Ba and Fe. Labels: strings.

Source: the data frame fgl of the R package MASS, row order kept (RI rounded to two decimals,
as measured); collected by B. German, studied in B. D. Ripley (1994), Journal of the Royal
Statistical Society B 56, 409-456.

"""
PARTITION = {
    "merged": """\
Here: the four classes of Cucala, Marin, Robert and Titterington (2009). Con and Tabl are joined
and the 29 Head rows are left out, which leaves 185 rows; a random 89 of them are the training
set and the other 96 the test set, as in the paper. The paper's own partition was never
published: compare a distribution over partitions, not one number.
""",
    "raw": """\
Here: all six classes and 214 rows; a random 103 of them are the training set and the other 111
the test set, which is the paper's share of 89 in 185.
""",
}


def load_glass(
    random_state: int | None | np.random.RandomState | np.random.Generator = 0,
    *,
    classes: str = "merged",
    as_frame: bool = False,
) -> Bunch:
    """Load the forensic glass data with a random partition into training and test rows.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=0
        Decides the partition. An int always gives the same one; ``None`` a fresh one.
    classes : {"merged", "raw"}, default="merged"
        ``"merged"``: the paper's four classes WinF, WinNF, Veh and Con+Tabl, without the 29
        Head rows, split 89 / 96. ``"raw"``: all six classes and 214 rows, split 103 / 111.
    as_frame : bool, default=False
        Return pandas objects in place of arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``X_train``, ``y_train``, ``X_test``, ``y_test``, ``feature_names``, ``target_names``,
        ``DESCR``, and ``train_rows`` and ``test_rows``: the rows of the 214, counted from 0.
        The partition is not stratified, as the paper's was not.

    Examples
    --------
    >>> from bayesknn.datasets import load_glass
    >>> glass = load_glass(random_state=1)
    >>> glass.X_train.shape, glass.X_test.shape
    ((89, 9), (96, 9))
    >>> glass.target_names.tolist()
    ['Con+Tabl', 'Veh', 'WinF', 'WinNF']
    """
    if classes not in N_TRAIN:
        raise ValueError(f"classes must be 'merged' or 'raw', got {classes!r}")
    table = read_table("glass.csv")
    labels, rows = table.labels, np.arange(len(table.labels))
    if classes == "merged":
        rows = np.flatnonzero(labels != "Head")
        labels = np.array([MERGED.get(label, label) for label in labels])
    # RandomState because its streams are frozen: a seed means the same partition for ever.
    if isinstance(random_state, np.random.Generator):
        rng: np.random.Generator | np.random.RandomState = random_state
    else:
        rng = check_random_state(random_state)
    rows = rng.permutation(rows)
    # Within each part the rows keep the order of the file.
    parts = np.sort(rows[: N_TRAIN[classes]]), np.sort(rows[N_TRAIN[classes] :])
    train, test = (Table(table.X[part], labels[part], table.feature_names) for part in parts)
    result = bunch(train, test, DESCR + PARTITION[classes], as_frame)
    result.train_rows, result.test_rows = parts
    return result
