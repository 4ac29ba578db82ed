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


def test_all_subpackages_are_introduced():
    for name in bayesknn._SUBPACKAGES - {"exceptions"}:
        assert f"``{name}``" in bayesknn.__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Bayes'"):
        bayesknn.Bayes  # noqa: B018


def test_errors_and_warnings_are_what_they_say():
    assert issubclass(bayesknn.CoalescenceError, RuntimeError)
    assert issubclass(bayesknn.MixingWarning, UserWarning)
    assert issubclass(bayesknn.PhaseTransitionWarning, UserWarning)
