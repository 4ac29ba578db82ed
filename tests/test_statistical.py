"""The judge is judged: its error rate is what it declares, and it can say no."""

import numpy as np
import pytest

from tests.statistical import check, p_value_of_counts, p_value_of_z, rejects


@pytest.mark.parametrize("law", [[0.97, 0.01, 0.01, 0.01], [0.5, 0.3, 0.1, 0.05, 0.05]])
def test_p_values_of_a_sound_sampler_are_uniform(law):
    rng = np.random.default_rng(0)
    p = np.array([p_value_of_counts(rng.multinomial(20_000, law), law) for _ in range(4000)])
    for level in (0.5, 0.1, 0.01):
        expected = 4000 * level
        # Five standard deviations of a binomial count.
        assert abs((p < level).sum() - expected) < 5 * np.sqrt(expected)


def test_an_impossible_outcome_is_rejected():
    assert p_value_of_counts([3, 1000, 1000], [0.0, 0.5, 0.5]) == 0.0


def test_too_few_draws_are_refused():
    with pytest.raises(ValueError, match="too few"):
        p_value_of_counts([10, 0], [1 - 1e-7, 1e-7])


def test_check_and_rejects_agree():
    for p in (0.0, 1e-7, 1e-3, 0.5):
        if rejects(lambda n_draws, seed, p=p: p, 10):
            with pytest.raises(AssertionError, match="p ="):
                check(lambda n_draws, seed, p=p: p, 10)
        else:
            check(lambda n_draws, seed, p=p: p, 10)
    assert rejects(lambda n_draws, seed: 1e-3, 10)
    assert not rejects(lambda n_draws, seed: 1e-3 if n_draws == 10 else 0.5, 10)


def test_scores_count_their_number():
    assert p_value_of_z([3.0] * 100) > p_value_of_z([3.0])
    assert p_value_of_z([np.nan]) == 0.0
