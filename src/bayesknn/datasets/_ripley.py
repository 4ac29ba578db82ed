"""Ripley's synthetic two-class benchmark (Section 1.2, Figure 1, Table 1)."""

from sklearn.utils import Bunch

from bayesknn.datasets._files import bunch, read_table

DESCR = """\
Ripley's synthetic two-class data
=================================
250 training points (125 of each class) and 1000 test points (500 of each class) in the plane.
Each class is an equal mixture of two bivariate normal distributions, with some overlap.

Features: x1, x2, the coordinates. Labels: integers 0 and 1 (the paper writes 1 and 2).

Source: B. D. Ripley (1994), Neural networks and related methods for classification, Journal of
the Royal Statistical Society B 56, 409-456; the data frames synth.tr and synth.te of the R
package MASS, row order kept. Used throughout Cucala, Marin, Robert and Titterington (2009).
"""


def load_ripley(*, as_frame: bool = False) -> Bunch:
    """Load Ripley's synthetic data, the running example of the paper.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas objects in place of arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``X_train`` (250, 2), ``y_train``, ``X_test`` (1000, 2), ``y_test``, ``feature_names``,
        ``target_names`` and ``DESCR``. Labels are the integers 0 and 1.

    Examples
    --------
    >>> from bayesknn.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> ripley.X_train.shape, ripley.X_test.shape
    ((250, 2), (1000, 2))
    """
    train, test = (read_table(f"ripley_{part}.csv") for part in ("train", "test"))
    train, test = (table._replace(labels=table.labels.astype(int)) for table in (train, test))
    return bunch(train, test, DESCR, as_frame)
