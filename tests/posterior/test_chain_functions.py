"""What the three chains have in common as functions: priors, bad input, Ctrl-C."""

import inspect
import pickle
import re
import sys

import numpy as np
import pytest

import bayesknn.posterior
from bayesknn.exceptions import SamplingInterrupted
from bayesknn.likelihood import CoherentLikelihood, ExactLikelihood
from bayesknn.model import UniformPrior
from bayesknn.posterior import auxiliary, exchange, metropolis
from bayesknn.posterior.mcmc.exchange import ExchangeSampler
from tests.posterior.label_chain_cases import BETA_MAX, K_MAX, PRIOR, make_likelihood

FUNCTIONS = [metropolis, exchange, auxiliary]
LABEL_CHAINS = [exchange, auxiliary]
every_chain = pytest.mark.parametrize("function", FUNCTIONS)
# Short runs are judged as such; what matters here is that they are the same.
quiet = pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")


def data_for(function, seed=3):
    cls = ExactLikelihood if function is metropolis else CoherentLikelihood
    return make_likelihood(cls, seed=seed)


def run(function, likelihood=None, prior=PRIOR, **options):
    defaults = {"n_chains": 2, "n_draws": 60, "n_warmup": 20, "random_state": 0}
    if function is not metropolis:
        defaults |= {"label_sampler": "perfect", "thin": 3}
    if function is auxiliary:
        defaults |= {"n_first_stage": 10}
    return function(likelihood or data_for(function), prior, **{**defaults, **options})


@quiet
@every_chain
def test_a_prior_may_be_left_out_or_be_an_array_or_a_function(function):
    usual = run(function)
    assert usual.identical(run(function, prior=None, beta_max=BETA_MAX))
    assert usual.identical(run(function, beta_max=BETA_MAX))
    tree = run(function, prior=[0.0, 1.0, 1.0, 0.0], beta_max=BETA_MAX)
    assert set(np.unique(tree["posterior"]["k"])) == {2, 3}
    tree = run(function, prior=lambda beta, k: beta < 1.0, beta_max=BETA_MAX)
    assert tree["posterior"]["beta"].max() < 1.0


@every_chain
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": None}, "beta_max must be given unless prior is a Prior"),
        ({"prior": None, "beta_max": 0.0}, "beta_max must be a positive number, got 0.0"),
        ({"prior": None, "beta_max": -1.0}, "beta_max must be a positive number, got -1.0"),
        ({"prior": None, "beta_max": "auto"}, "beta_max must be a positive number, got 'auto'"),
        ({"prior": [1, -1, 1, 1], "beta_max": 2.0}, "not negative, got -1.0 at k=2"),
        ({"prior": [0, 0, 0, 0], "beta_max": 2.0}, "prior is zero everywhere"),
        ({"prior": [1, 1, 1], "beta_max": 2.0}, "prior must have 4 rows, .* got 3"),
        ({"prior": np.ones((4, 2, 2)), "beta_max": 2.0}, "prior must have shape"),
        ({"prior": "flat", "beta_max": 2.0}, "prior must be an array of numbers"),
        ({"prior": lambda beta, k: beta - 1, "beta_max": 2.0}, "not negative, got -"),
        ({"prior": lambda beta, k: 0 * beta, "beta_max": 2.0}, "prior is zero everywhere"),
        ({"prior": UniformPrior(K_MAX + 1, 2.0)}, "reaches k=5, but k is at most 4"),
        ({"prior": UniformPrior(K_MAX, 2.0), "beta_max": 3.0}, "beta_max=3.0 contradicts"),
        ({"n_draws": 0}, "n_draws must be an integer >= 1, got 0"),
        ({"n_draws": 2.5}, "n_draws must be an integer"),
        ({"n_chains": 0}, "n_chains must be an integer >= 1"),
        ({"n_warmup": -1}, "n_warmup must be an integer >= 0"),
        ({"random_state": -1}, "random_state must be >= 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(function, options, message):
    with pytest.raises(ValueError, match=message) as refusal:
        run(function, **options)
    assert "\n" not in str(refusal.value)


@quiet
@pytest.mark.parametrize("function", LABEL_CHAINS)
def test_ctrl_c_keeps_what_is_finished(function, monkeypatch):
    whole = run(function)
    advance = ExchangeSampler.advance

    def interrupted(self, state, key, first, last):
        if first >= 50:
            raise KeyboardInterrupt
        return advance(self, state, key, first, last)

    with monkeypatch.context() as patch:
        patch.setattr("bayesknn.posterior.mcmc.runner._MAX_GROWTH", 1.0)
        patch.setattr(ExchangeSampler, "advance", interrupted)
        n_kept = 50 - whole["warmup_posterior"].sizes["draw"]
        message = f"interrupted: each chain has {n_kept} of 60 draws"
        with pytest.raises(SamplingInterrupted, match=message) as stopped:
            run(function)
        cut = stopped.value.posterior
    for name in ("beta", "k"):
        kept = whole["posterior"][name].values[:, :n_kept]
        np.testing.assert_array_equal(cut["posterior"][name].values, kept)


def test_no_function_hides_a_module():
    for function in FUNCTIONS:
        assert getattr(bayesknn.posterior, function.__name__) is function
        assert f"bayesknn.posterior.{function.__name__}" not in sys.modules
        assert pickle.loads(pickle.dumps(function)) is function


@quiet
@every_chain
def test_two_data_sets_do_not_share_random_numbers(function):
    """With one random_state, exchange's errors had one sign on all of 36 data sets."""
    keys = {run(function, data_for(function, seed=seed)).attrs["keys"] for seed in (3, 4)}
    assert len(keys) == 2
    assert run(function).attrs["keys"] == run(function).attrs["keys"]


@quiet
def test_a_seed_sequence_may_be_used_twice():
    seeds = np.random.SeedSequence(7)
    first, second = (run(metropolis, random_state=seeds) for _ in range(2))
    assert first.identical(second)


def test_shared_arguments_are_described_and_have_the_same_defaults():
    defaults = {}
    for function in FUNCTIONS:
        described = inspect.getdoc(function)
        for name, parameter in inspect.signature(function).parameters.items():
            # By itself, or among those that another function describes.
            found = re.search(rf"^( *[a-z_, ]*, |){name}( :|, |$)", described, re.MULTILINE)
            assert found, (function.__name__, name)
            defaults.setdefault(name, set()).add(parameter.default)
    assert all(len(values) == 1 for values in defaults.values()), defaults


@every_chain
def test_a_prior_with_no_place_to_start_is_refused(function):
    class Nowhere:
        k_max, beta_max = K_MAX, BETA_MAX

        def log_density(self, beta, k):
            return np.full(np.broadcast(beta, k).shape, -np.inf)

    with pytest.raises(ValueError, match="no start found: the .* is zero or not a number"):
        run(function, prior=Nowhere())
