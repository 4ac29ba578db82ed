"""The moves of Section 3.1: slow twins, tuning."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bayesknn.model import UniformPrior
from bayesknn.posterior import metropolis
from bayesknn.posterior.mcmc.metropolis import MetropolisSampler
from bayesknn.posterior.mcmc.proposals import plan_walk, propose
from tests.posterior.toy import EnumeratedLikelihood
from tests.statistical import check, p_value_of_counts

KEY = np.uint64(12345)


def neighbours(k, r, k_max):
    """Write the set of Section 3.1 as it is written there."""
    return [j for j in range(1, k_max + 1) if j != k and abs(j - k) <= r]


def log_derivative(theta):
    """Return the log of dbeta/dtheta, up to the constant beta_max."""
    share = 1 / (1 + math.exp(-theta))
    return math.log(share * (1 - share))


def test_k_is_proposed_uniformly_among_its_neighbours():
    for k_max, r in ((2, 1), (5, 2), (7, 3), (4, 20)):
        walk, tuning = plan_walk(4.0, k_max, "joint", 0, tau=0.3, r=r)
        for k in range(1, k_max + 1):
            values = neighbours(k, r, k_max)
            counts = dict.fromkeys(values, 0)
            for iteration in range(400):
                counts[int(propose(walk, tuning, 0.3, k, KEY, iteration).k)] += 1
            expected = np.full(len(values), 1 / len(values))
            assert p_value_of_counts(np.array(list(counts.values())), expected) > 1e-6


def test_beta_does_not_overflow():
    walk, tuning = plan_walk(4.0, 9, "joint", 0, tau=0.3, r=3)
    for theta, beta in ((800.0, 4.0), (-800.0, 0.0)):
        to = propose(walk, tuning, theta, 5, KEY, 0)
        assert to.beta == beta
        # Far out the Jacobian is exp(-abs(theta)).
        there = len(neighbours(5, 3, 9)) / len(neighbours(to.k, 3, 9))
        assert to.log_correction == pytest.approx(math.log(there) + 800.0 - abs(to.theta))


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
        expected = math.log(there) + log_derivative(to.theta) - log_derivative(theta)
        assert math.isclose(to.log_correction, expected, abs_tol=1e-12)
    assert math.isclose(to.beta, 4.0 / (1 + math.exp(-to.theta)))
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
        assert math.isclose(to.log_correction, log_derivative(to.theta) - log_derivative(0.3))


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

    correction += log_derivative(theta + shift) - log_derivative(theta)
    return theta + shift, beta_max / (1 + math.exp(-theta - shift)), to, correction, accept


@pytest.mark.parametrize("schedule", ["joint", "alternating"])
@pytest.mark.parametrize(("k_max", "r"), [(1, 4), (2, 1), (7, 20), (30, 4)])
def test_compiled_proposals_agree_with_their_slow_twin(schedule, k_max, r):
    walk, tuning = plan_walk(4.0, k_max, schedule, 100, tau=0.2, r=r)
    tuning = tuning._replace(slope=-0.2)
    for iteration in range(60):
        k = iteration % k_max + 1
        fast = propose(walk, tuning, -0.4, k, KEY, iteration)
        if abs(fast.theta) > 20:
            continue
        slow = slow_propose(schedule, 0.2, r, -0.2, 4.0, k_max, -0.4, k, int(KEY), iteration)
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-12)


def test_beta_steps_are_normal():
    def p_value(n_draws, seed):
        walk, tuning = plan_walk(4.0, 1, "joint", 0, tau=0.7)
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        steps = [propose(walk, tuning, 0.2, 1, key, i).theta - 0.2 for i in range(n_draws)]
        return stats.kstest(steps, stats.norm(scale=0.7).cdf).pvalue

    check(p_value, 5000)


class Refused(MetropolisSampler):
    """Notes where it might start, and refuses."""

    def start(self, theta, k):
        self.likelihood.append((theta, k))


def test_starts_are_uniform_and_those_of_further_attempts_differ():
    def p_value(n_keys, seed):
        walk, tuning = plan_walk(4.0, 5, "joint", 0)
        cells = []
        for key in np.random.SeedSequence(seed).generate_state(n_keys, np.uint64):
            starts = []
            with pytest.raises(ValueError, match="no start found"):
                Refused(UniformPrior(5, 4.0), walk, tuning, 1, starts).init(key)
            # After so many the prior is asked.
            theta, k = np.array(starts[:1000]).T
            assert len(np.unique(theta)) == 1000
            cells.append(np.floor(4.0 / (1 + np.exp(-theta))).astype(int) * 5 + k.astype(int) - 1)
        counts = np.bincount(np.concatenate(cells), minlength=20)
        return p_value_of_counts(counts, np.full(20, 1 / 20))

    check(p_value, 5)


def slow_adapt(walk, tuning, theta, k, acceptance, iteration):
    """Tune in warm-up: steps to how often they are accepted, the slope by a regression."""
    if iteration >= walk.n_warmup or not walk.adapts_slope:
        return tuning
    of_beta = walk.k_max == 1 or iteration % 2 == 0
    along_the_curve = not of_beta and iteration % 6 != 5
    gain = 1 / (iteration + 1) ** 0.6
    log_tau, log_r = tuning.log_tau, tuning.log_r
    if of_beta and walk.adapts_tau:
        log_tau += gain * (acceptance - 0.44)
    if along_the_curve and walk.adapts_r:
        log_r = float(np.clip(log_r + gain * (acceptance - 0.25), 0.0, math.log(walk.k_max)))
    # Means, a variance and a covariance in which the last point has this weight.
    w = 3 / (iteration + 3)
    away = np.array([theta - tuning.mean_theta, math.log(k) - tuning.mean_log_k])
    variance = (1 - w) * tuning.variance + (1 - w) * w * away[1] ** 2
    covariance = (1 - w) * tuning.covariance + (1 - w) * w * away[0] * away[1]
    return tuning._replace(
        log_tau=log_tau,
        log_r=log_r,
        slope=covariance / (variance + 1e-4),
        mean_theta=tuning.mean_theta + w * away[0],
        mean_log_k=tuning.mean_log_k + w * away[1],
        variance=variance,
        covariance=covariance,
    )


def find_tuning(likelihood=None, **options):
    """Return tau, r and slope of one chain after its last draw."""
    tree = metropolis(
        likelihood or EnumeratedLikelihood(3), beta_max=4.0, n_chains=1, random_state=0, **options
    )
    return {name: values[0] for name, values in json.loads(tree.attrs["tuning"]).items()}


quiet = pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")


@quiet
def test_tuning_is_constant_after_warmup_and_where_it_was_given():
    for fixed in ({}, {"tau": 0.3}, {"r": 2}):
        short, long = (find_tuning(n_warmup=40, n_draws=n, **fixed) for n in (20, 300))
        assert short == long and short["slope"] != 0
        assert (short["tau"] == pytest.approx(0.3)) == ("tau" in fixed)
        assert short["r"] == 2 or "r" not in fixed
    # It begins with wide steps.
    assert find_tuning(n_warmup=0, n_draws=20) == pytest.approx({"tau": 0.5, "r": 1, "slope": 0.0})
    joint = find_tuning(n_warmup=40, n_draws=20, scheme="joint")
    assert joint == pytest.approx({"tau": math.sqrt(0.05), "r": 3, "slope": 0.0})
    only_k_1 = find_tuning(n_warmup=40, n_draws=20, prior=[1.0, 0.0, 0.0, 0.0, 0.0])
    assert np.isfinite(list(only_k_1.values())).all()


class NarrowRidge:
    """theta given k is N(log k / 2, .05^2) for k = 4..16: far narrower than the first step."""

    k_max = 20

    def log_density(self, beta, k):
        if not (4 <= k <= 16 and 0 < beta < 4):
            return -math.inf
        theta = math.log(beta / (4 - beta))
        return -0.5 * ((theta - 0.5 * math.log(k)) / 0.05) ** 2 - log_derivative(theta)


@quiet
def test_tuning_finds_the_step_and_the_ridge():
    tuning = find_tuning(NarrowRidge(), n_warmup=4000, n_draws=10)
    assert abs(tuning["slope"] - 0.5) < 0.1
    assert 0.05 < tuning["tau"] < 0.3
    assert tuning["r"] >= 5
