"""Diabetes among Pima women (Section 4, Table 2, Figure 13)."""

from sklearn.utils import Bunch

from bayesknn.datasets._files import bunch, read_table

DESCR = """\
Diabetes among women of Pima heritage
=====================================
200 training rows (68 with diabetes) and 332 test rows (109 with diabetes): women of at least 21
years living near Phoenix, Arizona, tested for diabetes by the U.S. National Institute of
Diabetes and Digestive and Kidney Diseases. Rows with a missing measurement were left out.

Features: npreg (pregnancies), glu (plasma glucose in an oral tolerance test), bp (diastolic
blood pressure, mm Hg), skin (triceps skin fold, mm), bmi (body mass index), ped (diabetes
pedigree function), age (years). Labels: the strings 'No' and 'Yes'.

Source: the data frames Pima.tr and Pima.te of the R package MASS, row order kept; B. D. Ripley
(1996), Pattern Recognition and Neural Networks, Cambridge University Press. The split into
training and test rows is the one of MASS and of the paper.
"""


def load_pima(*, as_frame: bool = False) -> Bunch:
    """Load the Pima diabetes data as the paper splits them.

    Parameters
    ----------
    as_frame : bool, default=False
        Return pandas objects in place of arrays.

    Returns
    -------
    sklearn.utils.Bunch
        ``X_train`` (200, 7), ``y_train``, ``X_test`` (332, 7), ``y_test``, ``feature_names``,
        ``target_names`` and ``DESCR``. Labels are the strings 'No' and 'Yes'.

    Examples
    --------
    >>> from bayesknn.datasets import load_pima
    >>> pima = load_pima()
    >>> int((pima.y_train == "Yes").sum()), int((pima.y_test == "Yes").sum())
    (68, 109)
    """
    train, test = (read_table(f"pima_{part}.csv") for part in ("train", "test"))
    return bunch(train, test, DESCR, as_frame)
