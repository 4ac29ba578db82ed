"""Records for the page docs/clients.md: what was tried, at which version, and whether it works.

``make clients`` installs the libraries and runs these tests; ``make test`` does not. Each test has
``@pytest.mark.client("name of the distribution")``, and the first line of its docstring is its line
on the page.
"""

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    PooledNeighborsClassifier,
)
from bayesknn.datasets import load_ripley

CLASSIFIERS = {
    "bayesian": lambda: BayesianKNeighborsClassifier(
        "pseudo", max_neighbors=12, beta_max=4.0, n_draws=500, random_state=0
    ),
    "pooled": lambda: PooledNeighborsClassifier(members=("evidence",), random_state=0),
    "classical": lambda: ClassicalKNeighborsClassifier(5),
}
# What does not work yet, by test and classifier, and why: an entry goes with the mend.
FAULTS: dict[str, str] = {}
RECORDS = pytest.StashKey[list]()


def pytest_collection_modifyitems(items):
    """Let other libraries warn: what they deprecate is not ours."""
    for item in items:
        if item.get_closest_marker("client"):
            item.add_marker(pytest.mark.filterwarnings("default"), append=False)
            if why := FAULTS.get(item.name) or FAULTS.get(item.originalname):
                item.add_marker(pytest.mark.xfail(reason=why))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Record library, version, classifier, and whether it works."""
    report = yield
    marker = item.get_closest_marker("client")
    if marker and report.when == "call":
        expected = getattr(report, "wasxfail", "")
        item.config.stash.setdefault(RECORDS, []).append(
            {
                "library": marker.args[0],
                "version": version(marker.args[0]),
                "tried": item.function.__doc__.splitlines()[0].rstrip("."),
                "with": item.callspec.params.get("kind", "") if hasattr(item, "callspec") else "",
                "works": report.passed and not expected,
                "reason": expected or ("" if report.passed else "fails"),
            }
        )
    return report


def pytest_sessionfinish(session):
    """Write the records into the file that CLIENTS_RECORD names, if it is set."""
    if path := os.environ.get("CLIENTS_RECORD"):
        python = ".".join(map(str, sys.version_info[:3]))
        found = {"python": python, "records": session.config.stash.get(RECORDS, [])}
        Path(path).write_text(json.dumps(found, indent=1) + "\n")


@pytest.fixture(scope="session")
def ripley():
    """Return every third row of the training set, and 25 test rows."""
    data = load_ripley()
    return data.X_train[::3], data.y_train[::3], data.X_test[::40], data.y_test[::40]


@pytest.fixture(params=list(CLASSIFIERS))
def kind(request):
    """Return the name of each classifier in turn."""
    return request.param


@pytest.fixture
def clf(kind):
    """Return each classifier in turn, unfitted."""
    return CLASSIFIERS[kind]()
