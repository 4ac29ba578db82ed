"""log Z by path sampling against exact values, judged by its own Monte Carlo error."""

from functools import partial

import numpy as np
import pytest

from bayesknn.likelihood import log_normalizer, path_table
from bayesknn.log_z import estimate
from bayesknn.log_z.records import Setting
from bayesknn.model import expected_agreement_exact
from tests.log_z.cases import BETAS, judge, keep_scores, make_case, score_table
from tests.model.graphs import ring, ripley_graph
from tests.statistical import check, p_value_of_z, rejects

# SPEC: by bucket elimination.
RIPLEY = {
    1: [343.41246357, 567.41240750, 1055.79773501],
    3: [320.67087178, 521.41875105, 1003.37011407],
    5: [314.17766595, 511.46919279, 1001.05894886],
}
TWO_CLASSES = (40, 4, 2)
FOUR_CLASSES = (30, 3, 4)
WEIGHTED = (30, 3, 3, (0.6, 1.0, 1.4))
# Few show that what is forgotten moves the mean, see below; many that the errors are the spread.
FEW_TABLES, N_TABLES = 4, 16


def test_ripley_agrees_with_the_exact_values():
    def p_value(n_tables, seed):
        scores = np.zeros((3, 3))
        for at in range(n_tables):
            table = path_table(
                ripley_graph(),
                2,
                k_max=5,
                exact=False,
                random_state=np.random.SeedSequence([seed, at]),
            )
            for row, (k, exact) in zip(scores, RIPLEY.items(), strict=True):
                betas = [1.0, 2.0, 4.0]
                row += (table.log_normalizer(betas, k) - exact) / table.error(betas, k)
        return p_value_of_z(scores / np.sqrt(n_tables))

    check(p_value, 1)


@pytest.mark.parametrize(
    ("case", "n_tables"),
    [
        (TWO_CLASSES, N_TABLES),
        (FOUR_CLASSES, FEW_TABLES),
        (WEIGHTED, FEW_TABLES),
        pytest.param(FOUR_CLASSES, N_TABLES, marks=pytest.mark.slow),
        pytest.param(WEIGHTED, N_TABLES, marks=pytest.mark.slow),
    ],
)
def test_scores_have_mean_zero_and_unit_spread(case, n_tables):
    check(judge(lambda *which: keep_scores(*which, *case)), n_tables)


@pytest.mark.parametrize(
    "n_tables",
    [FEW_TABLES, *(pytest.param(n * N_TABLES, marks=pytest.mark.slow) for n in (1, 6))],
)
def test_scores_between_paths_have_unit_spread(n_tables):
    case = make_case(11, 10, 2)
    table = case.make_table(0)
    between = np.flatnonzero(np.isnan(table.closure))
    assert len(between)
    # One of them, since neighbours share their paths, and where disagreements are not rare:
    # at large beta a graph this small shows hardly any, and errors are on the safe side.
    check(judge(partial(score_table, case), (between[:1], slice(0, 3))), n_tables)


@pytest.mark.parametrize("shrink", [0.5, pytest.param(0.6, marks=pytest.mark.slow)])
def test_errors_that_are_too_small_are_rejected(shrink):
    # At 0.6 four times the tables decide.
    score = judge(lambda *which: keep_scores(*which, *TWO_CLASSES), shrink=shrink)
    assert rejects(score, N_TABLES)


@pytest.mark.mutant
@pytest.mark.filterwarnings("ignore::bayesknn.MixingWarning")
def test_beta_not_divided_by_k_is_rejected(monkeypatch):
    # Chains at k times the beta for which log Z is computed.
    monkeypatch.setattr(Setting, "beta", property(lambda at: at.rates[-1] * at.ks[-1] ** 2))
    assert rejects(judge(partial(score_table, make_case(*TWO_CLASSES))), 2)


@pytest.mark.mutant
def test_forgotten_class_weights_are_rejected():
    forgotten = make_case(*WEIGHTED)._replace(class_weight=None)
    assert rejects(judge(partial(score_table, forgotten)), 2)


def p_value_of_closure(n_tables, seed):
    case = make_case(*TWO_CLASSES)
    gaps = [case.make_table(np.random.SeedSequence([seed, at])).closure for at in range(n_tables)]
    return p_value_of_z(np.sum(gaps, axis=0) / np.sqrt(n_tables))


def test_the_path_closes():
    check(p_value_of_closure, 4)


def test_a_path_that_does_not_close_is_noticed(monkeypatch):
    right = estimate.log_monochrome_weight
    # One component too few.
    monkeypatch.setattr(estimate, "log_monochrome_weight", lambda *given: right(*given) - np.log(2))
    assert rejects(p_value_of_closure, 4)


def test_both_ends_of_the_path_count():
    # Where log Z is known at the far end too, its error falls again on the way there.
    table = make_case(*TWO_CLASSES).make_table(0)
    for k in (3, 4):
        errors = table.error(np.linspace(0.0, 4.0, 9), k)
        assert errors[-1] < errors.max() / 1.4


def test_tolerance_is_met_everywhere_without_labels():
    table = make_case(*TWO_CLASSES).make_table(3, tolerance=0.03)
    errors = [table.error(np.linspace(0, 4, 41), k).max() for k in range(1, 5)]
    assert max(errors) < 0.03 * 1.25
    assert table.error(0.0, 1) < 1e-12
    assert table.log_normalizer(0.0, 1) == pytest.approx(40 * np.log(2))


def test_the_slope_is_the_expected_agreement():
    case = make_case(*TWO_CLASSES)
    table = case.make_table(0)
    betas = np.linspace(0.05, 3.95, 14)
    for k in (1, 4):
        rise = table.log_normalizer(betas + 1e-5, k) - table.log_normalizer(betas - 1e-5, k)
        exact = expected_agreement_exact(case.graph, betas, k, 2) / k
        assert rise / 2e-5 == pytest.approx(exact, abs=0.5)


def test_small_k_are_exact():
    case = make_case(*TWO_CLASSES)
    table = path_table(case.graph, 2, random_state=0)
    assert table.is_exact.all() and table.n_sweeps == 0 and np.isnan(table.closure).all()
    for k in range(1, 5):
        assert table.log_normalizer(BETAS, k) == pytest.approx(case.exact[k - 1], abs=1e-6)
        assert table.error(BETAS, k) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("beta_max", [4.0, 40.0, 1000.0])
def test_small_k_are_exact_however_wide_the_range(beta_max):
    """On 64 even steps log Z was off by 5 at beta_max = 100, and called exact."""
    table = path_table(ring(120), 2, beta_max=beta_max)
    assert table.is_exact.all()
    betas = np.array([0.3, 1.0, 1.7, 2.5, 3.9, beta_max / 2, beta_max])
    exact = log_normalizer(ring(120), betas, 1, 2).value
    np.testing.assert_allclose(table.log_normalizer(betas, 1), exact, atol=1e-4, rtol=0)


def test_one_k_alone():
    def p_value(n_runs, seed):
        z = []
        for at in range(n_runs):
            found = log_normalizer(
                ring(50),
                BETAS,
                1,
                3,
                method="path",
                tolerance=0.1,
                random_state=np.random.SeedSequence([seed, at]),
            )
            e = np.exp(BETAS)
            exact = 50 * np.log(e + 2) + np.log1p(2 * ((e - 1) / (e + 2)) ** 50)
            z.append((found.value - exact) / found.error)
        return p_value_of_z(np.sum(z, axis=0) / np.sqrt(n_runs))

    check(p_value, 2)


def test_one_k_at_scalars_and_at_zero():
    value, error = log_normalizer(ring(20), 1.0, 1, 2, "path", tolerance=0.2, random_state=0)
    assert isinstance(value, float) and isinstance(error, float) and 0 < error < 0.3
    assert log_normalizer(ring(20), 0.0, 1, 2, "path") == (20 * np.log(2), 0.0)
    assert log_normalizer(ring(20), [0.0, 1.0], 1, 2, "path", random_state=0).value.shape == (2,)
