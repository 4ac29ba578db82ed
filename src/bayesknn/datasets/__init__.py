"""The three data sets of the paper, with their sources (Sections 1.2 and 4).

Each loader returns a :class:`sklearn.utils.Bunch` with ``X_train``, ``y_train``, ``X_test``,
``y_test``, ``feature_names``, ``target_names`` and ``DESCR``, and checks the SHA-256 of the files
that it reads.
"""

from bayesknn.datasets._loaders import load_glass, load_pima, load_ripley

__all__ = ["load_glass", "load_pima", "load_ripley"]
