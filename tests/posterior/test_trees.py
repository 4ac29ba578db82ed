"""The DataTree is laid out as ArviZ does it and survives netCDF."""

import json

import arviz_base
import numpy as np
import pytest
import xarray

from bayesknn.model import UniformPrior
from bayesknn.posterior import load_posterior, make_tree, metropolis, save_posterior
from tests.posterior.toy import BETA_MAX, EnumeratedLikelihood

# What is tested here does not depend on whether these short chains mixed.
pytestmark = pytest.mark.filterwarnings("ignore::bayesknn.exceptions.MixingWarning")


def sample(**options):
    prior = UniformPrior(5, BETA_MAX)
    options = {"n_draws": 1500, "n_warmup": 200, "random_state": 0, **options}
    return metropolis(EnumeratedLikelihood(3), prior, **options)


def test_layout_is_that_of_arviz():
    tree = sample()
    names = {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"}
    assert set(tree.children) == {*names, "observed_data"}
    assert tree["posterior"]["beta"].dims == ("chain", "draw")
    assert dict(tree["posterior"].sizes) == {"chain": 4, "draw": 1500}
    assert dict(tree["warmup_posterior"].sizes) == {"chain": 4, "draw": 200}
    assert tree["posterior"]["k"].dtype == np.int64
    assert tree["sample_stats"]["accepted"].dtype == bool
    assert {"accepted", "acceptance", "log_posterior"} <= set(tree["sample_stats"].data_vars)
    assert tree["observed_data"]["labels"].size == 8
    # arviz-base builds the same from the same arrays.
    made = arviz_base.from_dict(
        {"posterior": {name: tree["posterior"][name].values for name in ("beta", "k")}}
    )
    xarray.testing.assert_equal(tree["posterior"].dataset, made["posterior"].dataset)


def test_attributes_tell_how_it_was_made():
    attrs = sample().attrs
    assert attrs["algorithm"] == "metropolis" and attrs["scheme"] == "alternating"
    assert attrs["beta_max"] == 4.0 and attrs["k_max"] == 5
    tuning = json.loads(attrs["tuning"])
    assert all(len(tuning[name]) == 4 for name in ("tau", "r", "slope"))
    assert len(attrs["keys"].split()) == 4
    assert attrs["inference_library_version"]


def test_netcdf_gives_back_what_it_was_given(tmp_path):
    for tree in (sample(), make_tree({"beta": np.ones((1, 3)), "k": np.ones((1, 3), int)})):
        path = tmp_path / "posterior.nc"
        save_posterior(tree, path)
        again = load_posterior(path)
        xarray.testing.assert_identical(again, tree)
        assert again["posterior"]["k"].dtype == tree["posterior"]["k"].dtype
        # The file is closed: it can be replaced.
        path.unlink()


def test_without_warmup_there_are_no_warmup_groups():
    tree = make_tree({"beta": np.ones((2, 3)), "k": np.ones((2, 3), int)})
    assert set(tree.children) == {"posterior"}
