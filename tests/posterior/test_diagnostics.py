"""Numbers as in ArviZ where that has any, and sane ones for a k that stands still."""

import math

import arviz_stats
import numpy as np
import pytest

from bayesknn.posterior import diagnose, make_tree


def tree_of(k, beta=None, **more):
    beta = np.random.default_rng(0).normal(size=k.shape) if beta is None else beta
    return make_tree({"beta": beta, "k": k, **more})


def test_agrees_with_arviz_on_ordinary_chains():
    rng = np.random.default_rng(1)
    walk = rng.normal(size=(4, 1000)).cumsum(axis=1) * 0.1 + rng.normal(size=(4, 1000))
    tree = tree_of(rng.poisson(12, size=(4, 1000)), walk)
    found = diagnose(tree)
    for name in ("beta", "k"):
        for number in ("ess", "rhat", "mcse"):
            expected = getattr(arviz_stats, number)(tree["posterior"].to_dataset())[name]
            assert getattr(found, number)[name] == pytest.approx(float(expected))
    assert len(found.messages) == 1 and found.messages[0].startswith("beta did not mix")
    assert np.isnan(found.acceptance).all()


def test_constant_k_is_no_reason_to_worry():
    found = diagnose(tree_of(np.full((4, 1000), 7)))
    assert (found.ess["k"], found.rhat["k"], found.mcse["k"]) == (4000.0, 1.0, 0.0)
    assert found.messages == []


def test_chains_that_stand_apart_are_reported():
    found = diagnose(tree_of(np.repeat([[3], [14], [14], [14]], 1000, axis=1)))
    assert found.rhat["k"] == math.inf
    assert found.ess["k"] == 4.0
    assert found.mcse["k"] > 2
    assert "k stands still at a different value in each chain (last draws: 3, 14, 14, 14)" in str(
        found.messages
    )


def test_nearly_constant_k_gives_numbers():
    for case in range(6):
        k = np.full((4, 1000), 7)
        if case == 0:
            k[2, 100] = 8
        elif case == 1:
            k[0, 500:] = 8
        elif case == 2:
            k[:, ::2] = 8
        elif case == 3:
            k[1] = 8
        elif case == 4:
            k[:, 900:] = 8
        else:
            k[:, -1] = 8
        found = diagnose(tree_of(k))
        numbers = [found.ess["k"], found.rhat["k"], found.mcse["k"]]
        assert not np.isnan(numbers).any(), case
        assert bool(found.messages) == (case in (1, 3, 4)), (case, found.messages)


@pytest.mark.parametrize("values", [2, 3])
def test_k_of_two_values_has_an_rhat(values):
    # Half the draws at 2 and half at 3: the folded draws are all the same.
    k = 2 + np.arange(4000).reshape(4, 1000) % values
    assert diagnose(tree_of(k)).rhat["k"] == pytest.approx(1.0, abs=0.01)


def test_one_chain_is_judged_by_its_parts():
    rng = np.random.default_rng(2)
    still = rng.normal(size=(1, 2000))
    moving = still + np.linspace(0, 5, 2000)
    for beta, low, high in ((still, 0.98, 1.02), (moving, 1.5, math.inf)):
        assert low < diagnose(tree_of(np.full((1, 2000), 7), beta)).rhat["beta"] < high


def test_few_draws_are_said_to_be_few():
    found = diagnose(tree_of(np.array([[1, 2, 3], [2, 2, 1]])))
    assert found.messages[0] == "3 draws a chain are too few to judge mixing"
    assert found.rhat["k"] == math.inf
    assert found.ess["k"] == 2.0
    assert diagnose(tree_of(np.ones((2, 3), int))).ess["k"] == 6.0
    assert math.isfinite(diagnose(tree_of(np.array([[1, 2]]))).mcse["k"])


def test_low_acceptance_is_named_by_chain():
    rng = np.random.default_rng(3)
    accepted = rng.random((4, 1000)) < 0.4
    accepted[2] = False
    accepted[2, :3] = True
    found = diagnose(tree_of(rng.poisson(12, size=(4, 1000)), accepted=accepted))
    assert found.acceptance[2] == 0.003
    assert found.messages[0].startswith("few moves were accepted after warm-up (0.3 % in chain 2)")
