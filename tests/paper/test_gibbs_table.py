"""The paper's own table: Gibbs sampling and the trapezium rule, against exact expectations."""

import numpy as np
import pytest
from scipy.stats import t

from bayesknn.model import expected_agreement_exact
from bayesknn.paper.gibbs_table import BilinearTable, gibbs_means, integrate
from tests.log_z.cases import make_case
from tests.statistical import check, rejects

BETAS = np.linspace(0.0, 1.0, 5)


def p_value_of_means(case, divide_twice=False):
    ks = (1, case.graph.k_max)
    exact = np.array(
        [expected_agreement_exact(case.graph, BETAS, k, case.n_classes) / k for k in ks]
    )
    if divide_twice:
        exact[1] /= ks[1]

    def p_value(n_runs, seed):
        runs = [
            gibbs_means(
                case.graph, case.n_classes, BETAS, ks, (100, 400), np.random.SeedSequence([seed, i])
            )
            for i in range(n_runs)
        ]
        assert np.allclose([run[:, 0] for run in runs], case.graph.n_points / case.n_classes)
        away = np.mean(runs, axis=0)[:, 1:] - exact[:, 1:]
        errors = np.std(runs, axis=0, ddof=1)[:, 1:] / np.sqrt(n_runs)
        p_values = 2 * t.sf(np.abs(away / errors), n_runs - 1)
        return min(p_values.size * p_values.min(), 1.0)

    return p_value


@pytest.mark.parametrize("case", [(40, 4, 2), (30, 3, 4)])
def test_they_are_the_expectations(case):
    check(p_value_of_means(make_case(*case)), 12)


def test_dividing_by_k_twice_is_rejected():
    assert rejects(p_value_of_means(make_case(40, 4, 2), divide_twice=True), 12)


def test_between_nodes_log_z_is_linear():
    betas = np.array([0.0, 1.0, 3.0])
    rows = integrate(betas, np.array([[1.0, 2.0, 4.0], [2.0, 2.0, 2.0]]))
    assert rows.tolist() == [[0.0, 1.5, 7.5], [0.0, 2.0, 6.0]]
    table = BilinearTable(betas, rows)
    assert table.log_normalizer(2.0, 1) == pytest.approx(4.5)
    assert (table.k_max, table.beta_max) == (2, 3.0)


def test_it_does_not_depend_on_the_number_of_threads():
    case = make_case(40, 4, 2)
    one, two = (
        gibbs_means(case.graph, 2, BETAS, (1, 4), (10, 20), 5, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert np.array_equal(one, two)
