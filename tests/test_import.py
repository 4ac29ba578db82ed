"""`import bayesknn` stays light, and its public names are all there."""

import subprocess
import sys

import pytest

import bayesknn

HEAVY = ("sklearn", "numba", "scipy", "matplotlib", "pandas", "xarray", "arviz_base", "rich")


def modules_after(statement: str) -> set[str]:
    """Top-level modules in a fresh interpreter after a statement."""
    code = f"import sys\n{statement}\nprint(*{{m.partition('.')[0] for m in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("statement", ["import bayesknn", "import bayesknn.cli"])
def test_import_pulls_in_nothing_heavy(statement):
    assert modules_after(statement).isdisjoint({*HEAVY, "numpy"})


def test_help_pulls_in_nothing_heavy():
    statement = (
        "from click.testing import CliRunner; from bayesknn.cli import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0"
    )
    assert modules_after(statement).isdisjoint(HEAVY)


@pytest.mark.parametrize("name", bayesknn.__all__)
def test_every_public_name_resolves(name):
    assert getattr(bayesknn, name) is not None
    assert name in dir(bayesknn)


@pytest.mark.parametrize("name", sorted(bayesknn._SUBPACKAGES))
def test_every_subpackage_is_reached_as_an_attribute(name):
    assert getattr(bayesknn, name).__name__ == f"bayesknn.{name}"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Bayes'"):
        bayesknn.Bayes  # noqa: B018


def test_errors_and_warnings_are_what_they_say():
    assert issubclass(bayesknn.CoalescenceError, RuntimeError)
    assert issubclass(bayesknn.MixingWarning, UserWarning)
    assert issubclass(bayesknn.PhaseTransitionWarning, UserWarning)


def test_the_command_line_loads_no_ensembles_and_leaves_them_importable():
    code = (
        "import sys; from bayesknn.report.pipeline import import_skops_alone\n"
        "import_skops_alone(); assert 'sklearn.ensemble' not in sys.modules\n"
        "import sklearn.ensemble, sklearn.utils; assert len(sklearn.utils.all_estimators()) > 100"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_command_imports_no_statistics_and_leaves_them_importable(command):
    """What scikit-learn took from the stand-in works, and so does what was left out."""
    code = (
        f"import sys, gc; from bayesknn.cli.lean_imports import import_for_{command}\n"
        f"import_for_{command}()\n"
        "left_out = {'scipy.stats', 'numpy.f2py', 'sklearn.ensemble', 'sklearn.inspection'}\n"
        "assert not left_out & set(sys.modules), left_out & set(sys.modules)\n"
        "assert gc.isenabled()\n"
        "import numpy, scipy\n"
        "from sklearn.metrics import roc_auc_score\n"
        "assert roc_auc_score([0, 1, 1, 0], [.1, .6, .2, .2]) == .875\n"
        "from sklearn.covariance import MinCovDet\n"
        "points = numpy.random.default_rng(0).normal(size=(50, 2))\n"
        "assert MinCovDet(random_state=0).fit(points).covariance_.shape == (2, 2)\n"
        "assert scipy.stats.norm.cdf(0) == .5 and numpy.f2py.__path__\n"
        "import scipy.stats, sklearn.ensemble, sklearn.inspection"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_stand_ins_leave_modules_that_are_there_alone():
    import json.decoder

    from bayesknn.cli.lean_imports import stand_ins

    with stand_ins("json.decoder"):
        assert json.decoder.JSONDecoder().decode("1") == 1
    assert sys.modules["json.decoder"] is json.decoder
