"""The moves of Section 3.1: enumerated detailed balance, slow twins, tuning."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesknn.posterior.mcmc import proposals
from bayesknn.posterior.mcmc.proposals import (
    _adapt,
    _count_k_neighbors,
    _log_jacobian,
    _log_k_hastings,
    _propose_k,
    _reach,
    acceptance_probability,
    beta_of,
    draw_start,
    plan_walk,
    propose,
)
from tests.statistical import check, p_value_of_counts

KEY = np.uint64(12345)


def neighbours(k, r, k_max):
    """Write the set of Section 3.1 as it is written there."""
    return [j for j in range(1, k_max + 1) if j != k and abs(j - k) <= r]


def k_kernel(law, r, log_hastings):
    """Transition matrix of Metropolis-Hastings on k alone, by enumeration."""
    k_max = len(law)
    matrix = np.zeros((k_max, k_max))
    for k in range(1, k_max + 1):
        for to in neighbours(k, r, k_max):
            log_ratio = math.log(law[to - 1] / law[k - 1]) + log_hastings(k, to, r, k_max)
            share = 1 / len(neighbours(k, r, k_max))
            matrix[k - 1, to - 1] = share * acceptance_probability(log_ratio)
        matrix[k - 1, k - 1] = 1 - matrix[k - 1].sum()
    return matrix


@given(st.integers(1, 12), st.integers(1, 15), st.data())
def test_k_is_proposed_uniformly_among_its_neighbours(k_max, r, data):
    k = data.draw(st.integers(1, k_max))
    values = neighbours(k, r, k_max)
    assert _count_k_neighbors(k, r, k_max) == len(values)
    # One uniform number in the middle of each of equal intervals meets each value once.
    middles = (np.arange(len(values)) + 0.5) / max(len(values), 1)
    assert [_propose_k(k, r, k_max, u) for u in middles] == values
    if values:
        ends = _propose_k(k, r, k_max, 0.0), _propose_k(k, r, k_max, math.nextafter(1.0, 0.0))
        assert ends == (values[0], values[-1])
    else:
        assert _propose_k(k, r, k_max, 0.5) == k


@pytest.mark.parametrize("k_max", [2, 3, 7, 12])
@pytest.mark.parametrize("r", [1, 2, 3, 20])
def test_k_moves_are_in_detailed_balance(k_max, r):
    law = np.random.default_rng(k_max).dirichlet(np.ones(k_max))
    flow = law[:, None] * k_kernel(law, r, _log_k_hastings)
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-15)
    np.testing.assert_allclose(flow.sum(axis=0), law, rtol=0, atol=1e-12)


def test_without_the_hastings_term_the_law_is_not_kept():
    law = np.full(7, 1 / 7)
    pushed = law @ k_kernel(law, 2, lambda *_: 0.0)
    assert np.abs(pushed - law).max() > 0.01


@given(st.floats(-30, 30))
def test_jacobian_is_the_derivative_of_beta(theta):
    step = 1e-4
    slope = (beta_of(theta + step, 4.0) - beta_of(theta - step, 4.0)) / (2 * step)
    if abs(theta) < 10:
        assert math.isclose(4.0 * math.exp(_log_jacobian(theta)), slope, rel_tol=1e-6)
    assert math.isclose(_log_jacobian(theta), _log_jacobian(-theta), rel_tol=1e-12)


def test_beta_does_not_overflow():
    assert beta_of(800.0, 4.0) == 4.0
    assert beta_of(-800.0, 4.0) == 0.0
    assert np.isfinite([_log_jacobian(800.0), _log_jacobian(-800.0)]).all()


@given(
    st.sampled_from(["joint", "alternating"]),
    st.floats(-4, 4),
    st.integers(1, 9),
    st.integers(0, 10**6),
    st.floats(-1, 1),
)
def test_correction_changes_sign_on_the_way_back(schedule, theta, k, iteration, slope):
    walk, tuning = plan_walk(4.0, 9, schedule, 0, tau=0.3, r=3)
    tuning = tuning._replace(slope=slope)
    to = propose(walk, tuning, theta, k, KEY, iteration)
    if schedule == "joint" or iteration % 6 != 5:
        there = len(neighbours(k, 3, 9)) / len(neighbours(to.k, 3, 9)) if to.k != k else 1.0
        expected = math.log(there) + _log_jacobian(to.theta) - _log_jacobian(theta)
        assert math.isclose(to.log_correction, expected, abs_tol=1e-12)
    assert math.isclose(to.beta, beta_of(to.theta, 4.0))
    if schedule == "alternating" and iteration % 6 in (1, 3):
        # The shift along the mode curve is undone by the move back from k' to k.
        back = to.theta + slope * math.log(k / to.k)
        assert math.isclose(back, theta, abs_tol=1e-12)


def test_what_the_moves_of_each_schedule_change():
    walk, tuning = plan_walk(4.0, 9, "alternating", 0)
    joint, _ = plan_walk(4.0, 9, "joint", 0)
    for iteration in range(20):
        to = propose(walk, tuning, 0.3, 5, KEY, iteration)
        # Without a slope yet, the leaps alone change both.
        assert (to.theta != 0.3) == (iteration % 6 in (0, 2, 4, 5))
        assert (to.k != 5) == (iteration % 2 == 1)
        to = propose(joint, tuning, 0.3, 5, KEY, iteration)
        assert to.theta != 0.3 and to.k != 5


@pytest.mark.parametrize("schedule", ["joint", "alternating"])
def test_one_value_of_k_leaves_k_alone_and_moves_beta_always(schedule):
    walk, tuning = plan_walk(4.0, 1, schedule, 10)
    for iteration in range(6):
        to = propose(walk, tuning, 0.3, 1, KEY, iteration)
        assert to.k == 1 and to.theta != 0.3
        assert math.isclose(to.log_correction, _log_jacobian(to.theta) - _log_jacobian(0.3))
        tuning = _adapt(walk, tuning, to.theta, to.k, 0.5, iteration)
    assert np.isfinite(tuning).all()


def splitmix(value):
    """Scramble 64 bits in plain integers."""
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) % 2**64
    return value ^ value >> 31


def slow_uniform(key, iteration, slot):
    stream = splitmix((key + (iteration + 2) * 0xD1342543DE82EF95) % 2**64)
    return (splitmix((stream + (slot + 1) * 0x9E3779B97F4A7C15) % 2**64) >> 11) / 2**53


def slow_propose(schedule, tau, r, slope, beta_max, k_max, theta, k, key, iteration):
    """Do what Section 3.1 and the first lines of the module say, word for word."""
    accept, radius, angle, for_k, reach = (slow_uniform(key, iteration, s) for s in range(5))
    moves_k = k_max > 1 and (schedule == "joint" or iteration % 2 == 1)
    leaps = schedule == "alternating" and moves_k and iteration % 6 == 5
    to, correction = k, 0.0
    if leaps:
        r = math.floor((k_max + 1) ** reach)
    if moves_k:
        there = neighbours(k, r, k_max)
        to = there[int(for_k * len(there))]
        correction += math.log(len(there) / len(neighbours(to, r, k_max)))
    if leaps:
        shift = tau * stats.cauchy.ppf(angle)
    elif schedule == "alternating" and moves_k:
        shift = slope * (math.log(to) - math.log(k))
    else:
        shift = tau * math.sqrt(-2 * math.log(1 - radius)) * math.cos(2 * math.pi * angle)

    def log_derivative(theta):
        share = 1 / (1 + math.exp(-theta))
        return math.log(beta_max * share * (1 - share))

    correction += log_derivative(theta + shift) - log_derivative(theta)
    return theta + shift, beta_max / (1 + math.exp(-theta - shift)), to, correction, accept


@pytest.mark.parametrize("schedule", ["joint", "alternating"])
@pytest.mark.parametrize("k_max", [1, 2, 30])
def test_compiled_proposals_agree_with_their_slow_twin(schedule, k_max):
    walk, tuning = plan_walk(4.0, k_max, schedule, 100, tau=0.2, r=4)
    tuning = tuning._replace(slope=-0.2)
    for iteration in range(60):
        k = iteration % k_max + 1
        fast = propose(walk, tuning, -0.4, k, KEY, iteration)
        if abs(fast.theta) > 20:
            continue
        slow = slow_propose(schedule, 0.2, 4, -0.2, 4.0, k_max, -0.4, k, int(KEY), iteration)
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-12)


def test_beta_steps_are_normal():
    def p_value(n_draws, seed):
        walk, tuning = plan_walk(4.0, 1, "joint", 0, tau=0.7)
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        steps = [propose(walk, tuning, 0.2, 1, key, i).theta - 0.2 for i in range(n_draws)]
        return stats.kstest(steps, stats.norm(scale=0.7).cdf).pvalue

    check(p_value, 5000)


def test_starts_are_uniform():
    def p_value(n_draws, seed):
        walk, _ = plan_walk(4.0, 5, "joint", 0)
        keys = np.random.SeedSequence(seed).generate_state(n_draws, np.uint64)
        starts = [draw_start(walk, key) for key in keys]
        beta = np.array([beta_of(theta, 4.0) for theta, _ in starts])
        cells = np.floor(beta).astype(int) * 5 + np.array([k for _, k in starts]) - 1
        return p_value_of_counts(np.bincount(cells, minlength=20), np.full(20, 1 / 20))

    check(p_value, 5000)


def test_starts_of_further_attempts_differ():
    walk, _ = plan_walk(4.0, 50, "joint", 0)
    starts = [draw_start(walk, KEY, attempt) for attempt in range(10)]
    assert len({theta for theta, _ in starts}) == 10


def test_tuning_is_constant_after_warmup_and_where_it_was_given():
    walk, tuning = plan_walk(4.0, 20, "alternating", 10, tau=0.3)
    changed = [_adapt(walk, tuning, 0.5, 7, 0.9, i) for i in range(12)]
    assert all(one.log_tau == tuning.log_tau for one in changed)
    assert changed[1].log_r > tuning.log_r and changed[1].slope != 0
    assert changed[10] == tuning and changed[11] == tuning
    walk, tuning = plan_walk(4.0, 20, "joint", 10)
    assert (math.exp(tuning.log_tau) ** 2, _reach(tuning.log_r, 20)) == pytest.approx((0.05, 3))
    assert _adapt(walk, tuning, 0.5, 7, 0.9, 0) == tuning


def test_tuning_finds_the_step_and_the_ridge():
    # theta | k is N(log k / 2, .05^2) for k = 4..16: far narrower than the first step.
    walk, tuning = plan_walk(4.0, 20, "alternating", 4000)
    theta, k = 0.5 * math.log(9), 9

    def log_target(theta, k):
        if not 4 <= k <= 16:
            return -math.inf
        return -0.5 * ((theta - 0.5 * math.log(k)) / 0.05) ** 2

    for iteration in range(4000):
        to = propose(walk, tuning, theta, k, KEY, iteration)
        acceptance = acceptance_probability(log_target(to.theta, to.k) - log_target(theta, k))
        if to.uniform < acceptance:
            theta, k = to.theta, to.k
        tuning = _adapt(walk, tuning, theta, k, acceptance, iteration)
    assert abs(tuning.slope - 0.5) < 0.1
    assert 0.05 < math.exp(tuning.log_tau) < 0.3
    assert _reach(tuning.log_r, 20) >= 5


def test_acceptance_of_impossible_proposals_is_zero():
    assert acceptance_probability(-math.inf) == 0.0
    assert acceptance_probability(math.nan) == 0.0
    assert acceptance_probability(math.inf) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 5, "joint", 10), "beta_max must be a positive number, got 0.0"),
        ((math.inf, 5, "joint", 10), "beta_max"),
        ((4.0, 0, "joint", 10), "k_max must be an integer >= 1"),
        ((4.0, 5, "random", 10), "scheme must be one of alternating, joint"),
        ((4.0, 5, "joint", -1), "n_warmup must be an integer >= 0"),
        ((4.0, 5, "joint", 10, -0.1), "tau must be a positive number"),
        ((4.0, 5, "joint", 10, math.nan), "tau must be a positive number"),
        ((4.0, 5, "joint", 10, None, 0), "r must be an integer >= 1"),
        ((4.0, 5, "joint", 10, None, 1.5), "r must be an integer >= 1"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_walk(*arguments)


def test_reserved_slots_are_below_the_free_ones():
    used = [getattr(proposals, name) for name in dir(proposals) if name.endswith("_SLOT")]
    assert sorted(used)[-1] == proposals.FREE_SLOT and len(set(used)) == len(used)
