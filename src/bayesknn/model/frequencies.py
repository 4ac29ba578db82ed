"""Class frequencies: what they alone say about the labels, and weights that correct them.

Without neighbours they are a null model. Where a class is over- or under-represented in the sample
and its true frequency p_g is known, weights ``a_g = p_g n / n_g`` (end of Section 2.2) correct for
it in :class:`~bayesknn.model.BoltzmannModel`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from bayesknn._utils.checks import as_floats, check_indices, check_label_vector


def log_evidence_of_frequencies(class_sizes: Any) -> float:
    """Return the log probability of the labels if they depend on class frequencies only.

    Labels are independent, with unknown frequencies that are uniform on the simplex: the evidence
    is ``(G - 1)! prod(n_g!) / (n + G - 1)!``.

    Examples
    --------
    Two labels: equal in two cases of three.

    >>> import numpy as np
    >>> from bayesknn.model import log_evidence_of_frequencies
    >>> round(float(np.exp(log_evidence_of_frequencies([2, 0]))), 6)
    0.333333
    """
    sizes = check_sizes(class_sizes)
    return float(gammaln(len(sizes)) + gammaln(sizes + 1).sum() - gammaln(sizes.sum() + len(sizes)))


def frequencies_of_others(class_sizes: Any) -> np.ndarray:
    """Return the probability of a label of each class given all others, in the same model.

    It is ``n_g / (n + G - 1)``. Their log, summed over the points, is what a pseudo-likelihood or a
    leave-one-out log score has to beat.

    Examples
    --------
    >>> from bayesknn.model.frequencies import frequencies_of_others
    >>> frequencies_of_others([2, 1]).tolist()
    [0.5, 0.25]
    """
    sizes = check_sizes(class_sizes)
    return sizes / (sizes.sum() + len(sizes) - 1)


def class_weights(labels: np.ndarray, class_prior: Any, classes: Sequence[Any]) -> np.ndarray:
    """Weigh each class by its true frequency over its frequency in the sample.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Integers in ``0..n_classes - 1``.
    class_prior : array-like of shape (n_classes,), or mapping
        The true frequencies p_g: positive, summing to one; in the order of the classes, or by
        class.
    classes : sequence of length n_classes
        What the classes are called: the keys of a mapping, and the names used in error messages.

    Returns
    -------
    ndarray of shape (n_classes,)
        The weights a_g. They are all 1 when the sample has the true frequencies.

    Examples
    --------
    >>> from bayesknn.model import class_weights
    >>> class_weights([0, 0, 0, 1], [0.5, 0.5], classes=["common", "rare"]).round(4).tolist()
    [0.6667, 2.0]
    >>> class_weights([0, 0, 0, 1], {"rare": 0.1, "common": 0.9}, classes=["common", "rare"])
    array([1.2, 0.4])
    """
    names = list(classes)
    prior = _check_class_prior(class_prior, names)
    labels = check_label_vector(labels, len(labels), len(names))
    sizes = np.bincount(labels, minlength=len(names))
    if not sizes.all():
        empty = names[int(np.argmin(sizes))]
        raise ValueError(f"class {empty!r} has no points: its weight p_g n / n_g is not defined")
    # In this order the frequencies of the sample give exactly 1.
    return prior / (sizes / len(labels))


def check_sizes(class_sizes: Any) -> np.ndarray:
    """Return the number of points in each class as an int64 array, at least one class long."""
    sizes = check_indices(class_sizes, "class_sizes", 2**53)
    if sizes.ndim != 1 or sizes.size == 0:
        raise ValueError(f"class_sizes must have shape (n_classes,), got {sizes.shape}")
    return sizes.astype(np.int64)


def _check_class_prior(class_prior: Any, names: list[Any]) -> np.ndarray:
    if isinstance(class_prior, Mapping):
        missing = [name for name in names if name not in class_prior]
        if missing:
            raise ValueError(f"class_prior has no entry for class {missing[0]!r}")
        unknown = [name for name in class_prior if name not in names]
        if unknown:
            raise ValueError(
                f"class_prior has an entry for {unknown[0]!r}, which is not a class; "
                f"the classes are {names}"
            )
        class_prior = [class_prior[name] for name in names]
    prior = as_floats(class_prior, "class_prior")
    if prior.shape != (len(names),):
        raise ValueError(
            f"class_prior must hold {len(names)} frequencies, one for each class, "
            f"got an array of shape {prior.shape}"
        )
    bad = ~(np.isfinite(prior) & (prior > 0))
    if bad.any():
        g = int(np.argmax(bad))
        raise ValueError(f"class_prior must be positive, got {prior[g]} for class {names[g]!r}")
    # Frequencies written with a few digits, such as .333, .333, .334, are taken as they are.
    if abs(prior.sum() - 1) > 1e-6:
        raise ValueError(f"class_prior must sum to 1, got {prior.sum():.6g}")
    return prior
