"""joblib's Dask back end: chains run on the workers and draw what they draw at home."""

import joblib
import numpy as np
import pytest

from bayesknn import BayesianKNeighborsClassifier
from bayesknn.posterior import load_posterior, make_tree, save_posterior

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 2
POINTS = RNG.normal(size=(60, 2)) + 1.5 * LABELS[:, None]


# So few draws are not worth much, and say so.
@pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")
@pytest.mark.parametrize(
    ("likelihood", "inference", "label_sampler"),
    [
        ("pseudo", "metropolis", "swendsen-wang"),
        ("coherent", "exchange", "perfect"),
        pytest.param("coherent", "auxiliary", "swendsen-wang", marks=pytest.mark.slow),
    ],
)
def test_chains_on_dask_workers_are_the_same_chains(client, likelihood, inference, label_sampler):
    def fit():
        return BayesianKNeighborsClassifier(
            likelihood, inference, label_sampler, max_neighbors=8, beta_max=3.0,
            n_chains=2, n_draws=200, n_warmup=100, random_state=0,
        ).fit(POINTS, LABELS)  # fmt: skip

    def count_tasks():
        return client.run_on_scheduler(
            lambda dask_scheduler: sum(
                prefix.state_counts["memory"] for prefix in dask_scheduler.task_prefixes.values()
            )
        )

    at_home, before = fit(), count_tasks()
    with joblib.parallel_config(backend="dask"):
        elsewhere = fit()
    # That the workers, and not the client, have run them.
    assert count_tasks() >= before + 2
    for name in ("beta", "k"):
        np.testing.assert_array_equal(
            elsewhere.posterior_[f"posterior/{name}"], at_home.posterior_[f"posterior/{name}"]
        )
    np.testing.assert_array_equal(
        elsewhere.predict_proba(POINTS[:9]), at_home.predict_proba(POINTS[:9])
    )


def test_a_posterior_is_saved_while_there_is_a_cluster(client, tmp_path):
    # xarray asks the cluster for a lock, which it cannot have on bytes in memory.
    tree = make_tree({"beta": np.full((2, 5), 1.4), "k": np.full((2, 5), 14)})
    save_posterior(tree, tmp_path / "posterior.nc")
    assert load_posterior(tmp_path / "posterior.nc").identical(tree)
