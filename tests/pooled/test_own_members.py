"""Members that the user gives: fitted in the pool's folds, weighed, saved and loaded."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import PooledNeighborsClassifier
from bayesknn.model_file.saved import load_model, save_model
from bayesknn.model_file.table_model import TableModel
from tests.pooled.test_companions import draw

LINEAR = "sklearn.linear_model._logistic.LogisticRegression"


class Recorder(ClassifierMixin, BaseEstimator):
    """The class frequencies, and what each clone was given."""

    calls: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None, groups=None):
        self.classes_, self.shares_ = np.unique(y), np.bincount(y, sample_weight)
        self.calls.append((X, y, sample_weight, groups))
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_ / self.shares_.sum(), (len(X), 1))


def make(estimator, *members, **parameters):
    return PooledNeighborsClassifier((*members, ("mine", estimator)), random_state=0, **parameters)


def test_a_linear_truth_is_left_to_a_linear_member():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 12))
    y = (X @ np.linspace(-1, 1, 12) + 0.5 * rng.normal(size=120) > 0).astype(int)
    clf = make(LogisticRegression(), "relevance").fit(X[:80], y[:80])
    assert clf.pool_weights_["mine"] > clf.pool_weights_["relevance"]
    assert clf.score(X[80:], y[80:]) > 0.8
    assert clf.k_probabilities_["mine"].tolist() == [1.0]
    assert clf.neighbor_share_ < 0.5
    assert np.isfinite(clf.predict_interval(X[80:])).all()


def test_clones_are_fitted_outside_each_fold_with_weights_and_groups():
    Recorder.calls.clear()
    X, y = draw(60, 3, 1)
    groups, weights = np.repeat(np.arange(20), 3), np.random.default_rng(0).uniform(1, 2, 60)
    given = Recorder()
    make(given, "discriminant").fit(X, y, weights, groups=groups)
    assert not hasattr(given, "classes_")
    sizes = [len(call[1]) for call in Recorder.calls]
    assert sizes[-1] == 60 and sum(60 - size for size in sizes) == 60
    everything = set(Recorder.calls[-1][3])
    for points, labels, row_weights, in_groups in Recorder.calls:
        assert points.shape == (len(labels), 5) and set(labels) == {0, 1, 2}
        assert len(np.unique(row_weights)) == len(labels)
        # Whole groups are left out, so that every group that is there has its three rows.
        assert set(np.bincount(in_groups)[list(set(in_groups))]) == {3}
        assert set(in_groups) <= everything


def test_labels_that_are_not_known_are_not_leaked():
    """A forest knows all its rows: judged on them it would predict permuted labels."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(90, 5)), rng.permutation(np.arange(90) % 2)
    clf = make(RandomForestClassifier(30), "discriminant").fit(X, y)
    assert clf.member_log_scores_["mine"] < -0.6
    again = make(RandomForestClassifier(30), "discriminant").fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))


def test_weights_that_are_not_taken_are_warned_of():
    X, y = draw(60, 2, 3)
    clf = make(make_pipeline(StandardScaler(), LogisticRegression()), "discriminant")
    with pytest.warns(UserWarning, match="member 'mine' takes no sample_weight"):
        clf.fit(X, y, np.linspace(1, 2, 60))
    assert any("takes no sample_weight" in each for each in clf.diagnostics_["warnings"])


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (("mine", LogisticRegression), r"must be \(name, classifier of scikit-learn\)"),
        (("mine",), r"must be \(name, classifier of scikit-learn\)"),
        (("boosted", LogisticRegression()), "'boosted' is the name of a member of bayesknn"),
        (("mine", StandardScaler()), "member 'mine' has no predict_proba"),
    ],
)
def test_members_that_are_none_are_named(member, message):
    with pytest.raises(ValueError, match=message):
        PooledNeighborsClassifier(("discriminant", member)).fit(*draw(40, 2, 0))


def test_it_is_cloned_and_its_parameters_are_kept():
    clf = make(LogisticRegression(C=3.0), "discriminant")
    copied = clone(clf)
    assert copied.members[1][1] is not clf.members[1][1]
    assert copied.get_params()["members"][1][1].C == 3.0


def test_saved_models_name_what_must_be_trusted(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = draw(60, 2, 4)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = TableModel(classifier=make(LogisticRegression(), "discriminant")).fit(frame, y)
    save_model(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match=f"holds {LINEAR}, a type .* trusted="):
        load_model(tmp_path / "m.skops")
    with pytest.raises(ValueError, match="trusted must be a list"):
        load_model(tmp_path / "m.skops", trusted=LINEAR)
    loaded = load_model(tmp_path / "m.skops", trusted=[LINEAR])
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    # Another class under the member's name is no member.
    loaded.classifier_._views["mine"] = loaded.classifier_._views["discriminant"]
    with pytest.raises(ValueError, match="'mine' does not fit"):
        PooledNeighborsClassifier().__setstate__(loaded.classifier_.__getstate__())
