"""Tests of the packaged data: sizes given in the paper, checksums and partitions."""

import numpy as np
import pytest

from bayesknn.datasets import _loaders, load_glass, load_pima, load_ripley


def counts(labels):
    values, sizes = np.unique(labels, return_counts=True)
    return dict(zip(values.tolist(), sizes.tolist(), strict=True))


def test_ripley_has_the_sizes_of_the_paper():
    ripley = load_ripley()
    assert ripley.X_train.shape == (250, 2)
    assert ripley.X_test.shape == (1000, 2)
    assert counts(ripley.y_train) == {0: 125, 1: 125}
    assert counts(ripley.y_test) == {0: 500, 1: 500}
    assert ripley.y_train.dtype.kind == "i"
    assert ripley.feature_names == ["x1", "x2"]
    assert ripley.target_names.tolist() == [0, 1]


def test_pima_has_the_sizes_of_the_paper():
    pima = load_pima()
    assert pima.X_train.shape == (200, 7)
    assert pima.X_test.shape == (332, 7)
    assert counts(pima.y_train) == {"No": 132, "Yes": 68}
    assert counts(pima.y_test) == {"No": 223, "Yes": 109}
    assert pima.feature_names == ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"]


@pytest.mark.parametrize("seed", range(5))
def test_glass_is_split_89_96_into_four_classes(seed):
    glass = load_glass(random_state=seed)
    assert glass.X_train.shape == (89, 9)
    assert glass.X_test.shape == (96, 9)
    whole = counts(np.concatenate([glass.y_train, glass.y_test]))
    assert whole == {"WinF": 70, "WinNF": 76, "Veh": 17, "Con+Tabl": 22}


@pytest.mark.parametrize("seed", range(5))
def test_raw_glass_keeps_all_six_classes_and_214_rows(seed):
    glass = load_glass(random_state=seed, classes="raw")
    assert (len(glass.y_train), len(glass.y_test)) == (103, 111)
    whole = counts(np.concatenate([glass.y_train, glass.y_test]))
    assert whole == {"WinF": 70, "WinNF": 76, "Veh": 17, "Con": 13, "Tabl": 9, "Head": 29}


@pytest.mark.parametrize(("classes", "n_rows"), [("merged", 185), ("raw", 214)])
def test_glass_partition_uses_each_row_once(classes, n_rows):
    glass = load_glass(random_state=3, classes=classes)
    rows = np.concatenate([glass.train_rows, glass.test_rows])
    assert len(rows) == n_rows == len(set(rows.tolist()))
    table = _loaders.read_table("glass.csv")
    np.testing.assert_array_equal(glass.X_train, table.X[glass.train_rows])
    np.testing.assert_array_equal(glass.X_test, table.X[glass.test_rows])


def test_glass_seed_decides_the_partition():
    first, again, other = (load_glass(random_state=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.train_rows, again.train_rows)
    assert not np.array_equal(first.train_rows, other.train_rows)
    # The rows are compared with fixed numbers, because a seed must give the same rows for ever.
    assert load_glass(random_state=0).train_rows[:8].tolist() == [2, 4, 5, 7, 8, 10, 16, 18]


@pytest.mark.parametrize(
    "random_state",
    [None, np.random.default_rng(1), np.random.RandomState(1)],
)
def test_glass_takes_any_kind_of_random_state(random_state):
    assert len(load_glass(random_state=random_state).y_train) == 89


def test_unknown_classes_of_glass_raise():
    with pytest.raises(ValueError, match="classes must be 'merged' or 'raw', got 'four'"):
        load_glass(classes="four")


@pytest.mark.parametrize("load", [load_ripley, load_pima, load_glass])
def test_every_loader_returns_the_same_fields(load):
    data = load()
    for part in ("train", "test"):
        X, y = data[f"X_{part}"], data[f"y_{part}"]
        assert X.dtype == np.float64
        assert X.shape == (len(y), len(data.feature_names))
        assert np.isfinite(X).all()
        assert set(y.tolist()) <= set(data.target_names.tolist())
    assert "Source:" in data.DESCR


@pytest.mark.parametrize("load", [load_ripley, load_pima, load_glass])
def test_frames_hold_the_same_values(load):
    arrays, frames = load(), load(as_frame=True)
    assert frames.X_train.columns.tolist() == arrays.feature_names
    np.testing.assert_array_equal(frames.X_test.to_numpy(), arrays.X_test)
    assert frames.y_test.tolist() == arrays.y_test.tolist()


@pytest.mark.parametrize("name", sorted(_loaders.SHA256))
def test_a_changed_file_raises(name, monkeypatch):
    monkeypatch.setitem(_loaders.SHA256, name, "0" * 64)
    with pytest.raises(ValueError, match=f"{name} has changed.*reinstall bayesknn") as error:
        _loaders.read_table(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("load", [load_ripley, load_pima, load_glass])
def test_descriptions_state_source_and_terms(load):
    description = load().DESCR
    assert "Source: " in description and "Terms: the R package MASS" in description
    assert max(map(len, description.splitlines())) <= 100
