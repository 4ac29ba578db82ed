"""Ctrl-C waits for the end of a kernel, which numba needs, on the routes that simulate labels."""

import signal

import pytest

from bayesknn._utils.jit import hold_interrupts
from bayesknn.exceptions import MixingWarning
from bayesknn.log_z import chains as log_z_chains
from bayesknn.posterior import exchange, grid_posterior
from bayesknn.posterior.mcmc import exchange as exchange_module
from tests.posterior.label_chain_cases import make_likelihood


def test_ctrl_c_waits_for_the_end_but_only_once():
    done = []
    with pytest.raises(KeyboardInterrupt), hold_interrupts():
        signal.raise_signal(signal.SIGINT)
        done.append("the block")
    assert done == ["the block"]
    with pytest.raises(KeyboardInterrupt), hold_interrupts():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("not this one")
    assert done == ["the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def simulate(likelihood):
    return grid_posterior(likelihood, beta_max=2.0, exact=False, random_state=0)


@pytest.mark.filterwarnings(f"ignore::{MixingWarning.__module__}.{MixingWarning.__name__}")
@pytest.mark.parametrize(
    ("module", "kernel", "run"),
    [
        (log_z_chains, "_advance", simulate),
        (
            exchange_module,
            "run_exchange",
            lambda one: exchange(one, beta_max=2.0, n_chains=1, n_draws=10, n_warmup=0),
        ),
    ],
    ids=["grid", "chains"],
)
def test_no_route_hears_it_within_a_kernel(module, kernel, run, monkeypatch):
    compiled, heard = getattr(module, kernel), []

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        heard.append("the end of the kernel")
        return compiled(*arguments)

    monkeypatch.setattr(module, kernel, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(make_likelihood())
    assert heard == ["the end of the kernel"]
