"""The paper's own grid: Gibbs sampling and the trapezium rule, against the rule done exactly."""

import numpy as np
import pytest

from bayesknn.likelihood import path_table
from bayesknn.log_z.paper_table import interpolate
from bayesknn.model import expected_agreement_exact
from tests.log_z.cases import make_case
from tests.statistical import check, p_value_of_z, rejects

SHAPE = (9, 2)


def run(case, seed, **options):
    return path_table(
        case.graph, case.n_classes, class_weight=case.class_weight, beta_max=1.0, grid="paper",
        grid_shape=SHAPE, n_sweeps=1500, n_warmup=100, random_state=seed, **options,
    )  # fmt: skip


def p_value_of_grid(case, divide_twice=False):
    betas = np.linspace(0.0, 1.0, SHAPE[0])
    k_max = case.graph.k_max
    exact = {}
    for k in (1, k_max):
        mean = expected_agreement_exact(case.graph, betas, k, case.n_classes, case.class_weight)
        mean = mean / k**2 if divide_twice else mean / k
        rises = np.diff(betas) * (mean[1:] + mean[:-1]) / 2
        start = case.graph.n_points * np.log(case.n_classes)
        exact[k] = start + np.cumsum(rises)

    def p_value(n_tables, seed):
        z = np.zeros((2, SHAPE[0] - 1))
        for at in range(n_tables):
            table = run(case, np.random.SeedSequence([seed, at]))
            for row, (k, values) in zip(z, exact.items(), strict=True):
                row += (table.log_normalizer(betas[1:], k) - values) / table.error(betas[1:], k)
        return p_value_of_z(z / np.sqrt(n_tables) / 1.05)

    return p_value


@pytest.mark.parametrize("case", [(40, 4, 2), (30, 3, 4), (30, 3, 3, (0.6, 1.0, 1.4))])
def test_it_is_the_trapezium_rule_of_the_expectations(case):
    check(p_value_of_grid(make_case(*case)), 4)


def test_dividing_by_k_twice_is_rejected():
    assert rejects(p_value_of_grid(make_case(40, 4, 2), divide_twice=True), 4)


def test_between_nodes_the_expectation_is_linear():
    table = run(make_case(40, 4, 2), 0)
    betas = np.linspace(0, 1, 37)
    for k in (1, 2, 4):
        means = np.interp(betas, table.betas, table.means[0, k - 1])
        assert table.expected_agreement(betas, k) == pytest.approx(means)
    middle = (2 * table.means[0, 0] + table.means[0, 3]) / 3
    assert table.means[0, 1] == pytest.approx(middle)
    assert table.log_normalizer(0.5, 2) == pytest.approx(
        (2 * table.log_normalizer(0.5, 1) + table.log_normalizer(0.5, 4)) / 3
    )


def test_interpolation_in_k_is_that_of_numpy():
    rows = np.random.default_rng(0).normal(size=(2, 3, 5))
    ks, found = np.array([1, 4, 9]), interpolate(np.array([1, 4, 9]), rows, 9)
    for r, column in np.ndindex(2, 5):
        assert found[r, :, column] == pytest.approx(
            np.interp(np.arange(1, 10), ks, rows[r, :, column])
        )
    assert interpolate(np.array([1]), rows[:, :1], 3).shape == (2, 3, 5)


def test_it_does_not_depend_on_the_number_of_threads():
    case = make_case(40, 4, 2)
    assert np.array_equal(
        run(case, 5, n_jobs=1).log_normalizers, run(case, 5, n_jobs=2).log_normalizers
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grid_shape": 12}, "grid_shape must be two integers"),
        ({"grid_shape": (1, 12)}, r"grid_shape\[0\] must be an integer >= 2"),
        ({"grid_shape": (5, 0)}, r"grid_shape\[1\] must be an integer >= 1"),
        ({"n_sweeps": 0}, "n_sweeps must be an integer >= 2"),
        ({"n_warmup": -1}, "n_warmup must be an integer >= 0"),
    ],
)
def test_bad_sizes_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        path_table(make_case(40, 4, 2).graph, 2, grid="paper", **options)
