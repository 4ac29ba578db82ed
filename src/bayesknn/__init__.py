"""k-nearest-neighbour classification that knows how sure it is.

The package follows Cucala, Marin, Robert and Titterington, "A Bayesian reassessment of
nearest-neighbour classification" (JASA 2009). Read the folders in this order and you have read
the paper; each imports only from those before it:

``reference``
    the whole paper in plain NumPy, to read first and to test against
``datasets``
    the paper's three data sets (Sections 1.2 and 4)
``graph``
    every point's neighbours, sorted once for all k (Section 1.2)
``model``
    the Boltzmann model of the labels, its prior and its exact normalising constant (Section 2)
``labels``
    draws of the labels given the parameters: Gibbs, Swendsen-Wang, perfect (Section 3.4)
``log_z``
    estimates of the normalising constant: from chains, and as a table (Section 3.3)
``likelihood``
    log f(labels | beta, k): pseudo, Holmes-Adams, coherent, exact (Sections 2 and 3)
``posterior``
    the posterior of (beta, k): quadrature, Metropolis, auxiliary variables, exchange (Section 3)
``predictive``
    class probabilities averaged over it, credible intervals, zones and losses (Sections 3 and 4)
``sureness``
    calibration and intervals for the true probability, from anybody's leave-one-out (beyond the
    paper)
``classifier``, ``classical``
    the Bayesian classifier, and the classical rule with leave-one-out choice of k (Section 1.2)
``pooled``
    neighbours in several metrics, pooled for the best class probabilities (beyond the paper)
``distributed``
    the Bayesian classifier on Dask collections (Section 3.2, block by block)
``column_sets``, ``column_selection``
    which columns say who is a neighbour: their posterior, and a choice, by evidence (Section 5)
``criticism``
    checks of a fitted model, comparison by evidence, other priors, coverage (beyond the paper)
``evaluation``
    scores with errors, folds, comparison and explanation of arrays (beyond the paper)
``tables``, ``model_file``
    files and frames as columns of numbers and categories, and a classifier of them in a file
``plots``, ``report``, ``paper``, ``cli``
    what people look at and type

Names are imported when they are first used, so that ``import bayesknn`` costs next to nothing.

Examples
--------
>>> from bayesknn import BayesianKNeighborsClassifier
>>> from bayesknn.datasets import load_ripley
>>> ripley = load_ripley()
>>> clf = BayesianKNeighborsClassifier(random_state=0).fit(ripley.X_train, ripley.y_train)
>>> int(clf.k_values_[clf.k_probabilities_.argmax()])
14
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from bayesknn._version import __version__
from bayesknn.exceptions import CoalescenceError, MixingWarning, PhaseTransitionWarning

if TYPE_CHECKING:
    from bayesknn._warmup import warmup
    from bayesknn.classical import ClassicalKNeighborsClassifier
    from bayesknn.classifier import BayesianKNeighborsClassifier
    from bayesknn.column_selection import ColumnSelector
    from bayesknn.criticism import check_intervals, compare_evidence, sensitivity
    from bayesknn.pooled import PooledNeighborsClassifier

__all__ = [
    "BayesianKNeighborsClassifier",
    "ClassicalKNeighborsClassifier",
    "CoalescenceError",
    "ColumnSelector",
    "MixingWarning",
    "PhaseTransitionWarning",
    "PooledNeighborsClassifier",
    "__version__",
    "check_intervals",
    "compare_evidence",
    "sensitivity",
    "warmup",
]

# Where the public names live that are too heavy to import at once (PEP 562).
_LAZY = {
    "BayesianKNeighborsClassifier": "bayesknn.classifier",
    "ClassicalKNeighborsClassifier": "bayesknn.classical",
    "ColumnSelector": "bayesknn.column_selection",
    "PooledNeighborsClassifier": "bayesknn.pooled",
    "check_intervals": "bayesknn.criticism",
    "compare_evidence": "bayesknn.criticism",
    "sensitivity": "bayesknn.criticism",
    "warmup": "bayesknn._warmup",
}
_SUBPACKAGES = {each.name for each in iter_modules(__path__) if not each.name.startswith("_")}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _SUBPACKAGES:
        return import_module(f"bayesknn.{name}")
    raise AttributeError(f"module 'bayesknn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
