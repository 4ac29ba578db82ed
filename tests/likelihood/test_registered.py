"""What every likelihood that users can choose must keep, also one that is added later."""

import numpy as np
import pytest
from click.testing import CliRunner
from skops import io

from bayesknn import BayesianKNeighborsClassifier
from bayesknn._utils.extras import LIKELIHOOD_NAMES
from bayesknn.cli import main
from bayesknn.criticism import compare_evidence
from bayesknn.likelihood import LIKELIHOODS, PseudoLikelihood
from bayesknn.report import write_report
from tests.report.tables import two_columns


class RegisteredLater(PseudoLikelihood):
    """The square root of the pseudo-likelihood, with a name, a sentence and a scale of its own."""

    name = "later"
    description = "This likelihood was registered by a test."
    beta_scale = 3.0
    # The grid shall ask for values, and not for the derivatives of the parent.
    is_concave = False

    def _log_density_at(self, beta, k):
        return 0.5 * super()._log_density_at(beta, k)

    def _log_density_curve(self, betas, k):
        return 0.5 * super()._log_density_curve(betas, k)


@pytest.fixture(params=[*LIKELIHOODS, "later"])
def name(request, monkeypatch):
    monkeypatch.setitem(LIKELIHOODS, "later", RegisteredLater)
    return request.param


def test_fitted_saved_and_reported(name, tmp_path):
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"]
    clf = BayesianKNeighborsClassifier(name, max_neighbors=6, n_draws=50, random_state=0).fit(X, y)
    assert clf.diagnostics_["inference"] == "grid"
    data = io.dumps(clf)
    again = io.loads(data, trusted=io.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    table = compare_evidence({"fit": clf})
    assert np.isfinite(table["log_evidence"]["class frequencies alone"])
    page = write_report(clf, X, y, out=tmp_path / "r.html", compare=False).read_text("utf-8")
    first = LIKELIHOODS[name].description.partition(". ")[0]
    assert first.replace("'", "&#39;") in page


@pytest.mark.parametrize(
    "name", [*(name for name, kind in LIKELIHOODS.items() if not kind.coherent), "later"],
    indirect=True,
)  # fmt: skip
def test_the_posterior_is_that_of_its_values(name):
    """A subclass may change the values and not the derivatives by which peaks are found."""
    table = two_columns(60)
    X, y = table[["x", "z"]], table["y"].to_numpy()
    clf = BayesianKNeighborsClassifier(name, max_neighbors=6, beta_max=4.0, n_draws=50).fit(X, y)
    likelihood = LIKELIHOODS[name](clf.graph_, np.unique(y, return_inverse=True)[1])
    betas, weights = np.polynomial.legendre.leggauss(100)
    each_k = np.exp(likelihood.log_density_grid(2 + 2 * betas) - clf.log_evidence_) @ weights / 12
    np.testing.assert_allclose(clf.k_probabilities_, each_k, rtol=1e-6)


def test_the_scale_of_beta_is_that_of_the_class(monkeypatch):
    monkeypatch.setitem(LIKELIHOODS, "later", RegisteredLater)
    table = two_columns(60)
    largest = {
        name: BayesianKNeighborsClassifier(name, max_neighbors=4, n_draws=50, random_state=0)
        .fit(table[["x", "z"]], table["y"])
        .beta_max_
        for name in ("pseudo", "later")
    }
    assert largest["later"] == pytest.approx(3 * largest["pseudo"])


def test_the_command_line_lists_them():
    assert tuple(LIKELIHOODS) == LIKELIHOOD_NAMES, "enter the name in _utils/extras.py"
    text = CliRunner().invoke(main, ["fit", "--help"], terminal_width=200).stdout
    assert "|".join(("pooled", *LIKELIHOODS)) in text
