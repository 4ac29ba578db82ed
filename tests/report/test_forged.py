"""Model files that were forged: an error of one line, before compiled code reads a part of them."""

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayesknn.model_file.schema import seal
from bayesknn.report import analyse, load_model, save_model
from tests.report.tables import QUICK, mixed_table


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the schema and the members of two models."""
    folder, models = tmp_path_factory.mktemp("models"), {}
    frame = mixed_table(60)
    for name, options in (
        ("pool", {"settings": {"max_neighbors": 9, "random_state": 0}, "model": "pooled"}),
        ("paper", {"settings": {**QUICK, "max_neighbors": 9}, "impute": True}),
    ):
        save_model(analyse(frame, "kind", compared=False, **options).model, folder / name)
        models[name] = read(folder / name)
    return models


def read(file):
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("schema.json")), members


def write(path, schema, members):
    """Write a file with the seal that it should have."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, "schema.json": json.dumps(schema)}.items():
            archive.writestr(name, content)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = seal(archive)


class Forger:
    """A schema and its members, and how to change them."""

    def __init__(self, schema, members):
        self.schema, self.members = json.loads(json.dumps(schema)), dict(members)

    def find(self, path):
        """Return the node at a path, such as ``classifier_/_views``."""
        node = self.schema
        for key in path.replace("CLASSIFIER", "classifier_").split("/"):
            content = node["content"]
            while isinstance(content, dict) and key not in content:
                content = content["content"]
            node = content[key] if isinstance(content, dict) else content[int(key)]
        return node

    def set(self, path, value):
        """Set a plain value, or what a function makes of an array."""
        node = self.find(path)
        # Equal plain values share a node of the file; a new id makes this node a separate one.
        node["__id__"] = len(self.members)
        if callable(value):
            array = value(np.load(io.BytesIO(self.members[node["file"]])))
            file = io.BytesIO()
            np.save(file, array)
            node["file"] = f"{path.replace('/', '.')}.npy"
            self.members[node["file"]] = file.getvalue()
        else:
            node["content"] = json.dumps(value)

    def graft(self, path, thing):
        """Put another object at a path."""
        schema, members = read(io.BytesIO(skops.io.dumps(thing)))
        node = self.find(path)
        node.clear()
        node.update(schema)
        self.members |= members


def altered_svc():
    """Return a classifier that skops trusts, and that reads beyond its arrays."""
    X, y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2
    voting = VotingClassifier([("svc", SVC())]).fit(X, y)
    voting.estimators_[0].support_ += 10**8
    return voting


def refer_often(forger):
    """Refer to one member 80 times, each time as another object."""
    node = forger.find("CLASSIFIER/loo_proba_")
    copies = [{**node, "__id__": -number} for number in range(1, 81)]
    forger.find("preparer_/identifiers_")["content"] = copies


def refer_to_itself(forger, depth=30):
    """Build lists of ten references to the list before: 10^30 parts in a few thousand bytes."""
    plain = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
    lists = [{**plain, "__id__": -1, "content": []}]
    for number in range(2, depth + 2):
        content = [{**plain, "__id__": 1 - number, "content": []} for _ in range(10)]
        lists.append({**plain, "__id__": -number, "content": content})
    forger.find("preparer_/identifiers_")["content"] = lists


def at(index, value):
    """Return a function that changes one entry of an array."""

    def change(array):
        array = array.copy()
        array[index] = value
        return array

    return change


DISCRIMINANT = "CLASSIFIER/_views/discriminant"
SPACE = f"{DISCRIMINANT}/space"
SMOOTH = "CLASSIFIER/_views/smooth"
BOOSTED = "CLASSIFIER/_views/boosted"
CLASS = "bayesknn class"
COLUMNS = "preparer_/columns_"
GRAFTS = {
    "an altered SVC": ("CLASSIFIER", altered_svc()),
    "an opener of files": ("preparer_/encoder_", CountVectorizer(input="filename")),
    "a scaler for a classifier": ("CLASSIFIER", StandardScaler()),
    "a scaler for a column": ("CLASSIFIER/classes_", StandardScaler()),
    "a dictionary for a view": (BOOSTED, {"a": 1}),
    "a generator": ("CLASSIFIER/random_state", np.random.default_rng(0)),
}
CHANGES = {
    "pool": {
        "a longer source": (f"{BOOSTED}/source", lambda a: np.tile(a, 99)),
        "features beyond": (f"{BOOSTED}/trees/features", lambda a: a + 7),
        "trees of other classes": (f"{BOOSTED}/start", lambda a: a[:1]),
        "rounds that never came": (f"{BOOSTED}/rounds", lambda a: a + 1),
        "children before": (f"{BOOSTED}/trees/children", at((0, 1), 1)),
        "fewer cuts": (f"{BOOSTED}/trees/cuts", lambda a: a[:, :-1]),
        "an order": ("CLASSIFIER/_columns/parts/2/is_ordered", True),
        "fewer shares": ("CLASSIFIER/_columns/parts/2/shares", lambda a: a[:1]),
        "narrow axes": (f"{DISCRIMINANT}/metric/whitening_/axes", lambda a: a[:, :1]),
        "fewer weights": (f"{SPACE}/weights", lambda a: a[:-1]),
        "other labels": (f"{SPACE}/searched/labels", lambda a: a[::-1]),
        "a class beyond": (f"{SPACE}/searched/labels", at(0, 3)),
        "a longer list": (f"{SPACE}/k_values", lambda a: a + 60),
        "fewer radii": (f"{SPACE}/reach", lambda a: a[:, 1:]),
        "fewer landmarks": (f"{SMOOTH}/kernel/landmarks", lambda a: a[1:]),
        "landmarks of other columns": (f"{SMOOTH}/kernel/landmarks", lambda a: a[:, 1:]),
        "slopes of other classes": (f"{SMOOTH}/slopes", lambda a: a[:, :1]),
        "a kernel of no number": (f"{SMOOTH}/kernel/bandwidth", float("nan")),
        "no kernel": (f"{SMOOTH}/kernel/{CLASS}", "bayesknn.pooled.kernels.KernelSpace"),
        "points that are none": (f"{SPACE}/searched/index/points", at(0, np.nan)),
        "another search": (f"{SPACE}/searched/index/{CLASS}",
                           "bayesknn.graph.search.brute.PrecomputedSearch"),
        "distances for a metric": (f"{SPACE}/searched/index/metric/{CLASS}",
                                   "bayesknn.graph.metrics.Precomputed"),
        "another view": (f"{BOOSTED}/{CLASS}", "bayesknn.pooled.views.AdditiveView"),
        "a class that no model has": (f"{BOOSTED}/{CLASS}", "bayesknn._utils.jit._Announcer"),
        "another leader": ("CLASSIFIER/_leader", "boosted"),
        "alpha of one class": ("CLASSIFIER/_members/discriminant/alpha", lambda a: a[:, :1]),
        "links at other k": ("CLASSIFIER/_members/discriminant/k_weights", lambda a: a[1:]),
        "a place beyond": ("CLASSIFIER/_reach_at", 99),
        "a rate of no number": ("CLASSIFIER/_members/discriminant/b", lambda a: a * np.nan),
        "an infinite leaf": (f"{BOOSTED}/trees/values", at((0, 1), np.inf)),
        "an infinite reach": (f"{SPACE}/reach", lambda a: a * np.inf),
        "a mean of no number": ("CLASSIFIER/_columns/parts/0/mean", float("nan")),
        "an infinite weight": ("CLASSIFIER/pool_weights_/discriminant", float("inf")),
        "a range of no number": (f"{COLUMNS}/length/low", float("nan")),
        "an unknown kind": (f"{COLUMNS}/length/kind/{CLASS}", "bayesknn.tables.remarks.Remark"),
        "a column of another kind": (f"{COLUMNS}/town/kind/{CLASS}", "bayesknn.tables.kinds.Date"),
        "a table for a kind": (f"{COLUMNS}/town/kind/{CLASS}", "bayesknn.tables.table.Table"),
        "an encoder of no column": ("preparer_/encoder_/parts_/length/mean", float("nan")),
    },
    "paper": {
        "a beta of no number": ("CLASSIFIER/_nodes/beta", at(0, np.nan)),
        "an infinite beta": ("CLASSIFIER/_nodes/beta", at(0, np.inf)),
        "a k beyond": ("CLASSIFIER/_nodes/k", at(-1, 60)),
        "labels beyond": ("CLASSIFIER/_labels", at(0, 3)),
        "a drawn k beyond": ("CLASSIFIER/_draws/groups/posterior/k", at((0, 0), 60)),
        "a drawn beta below 0": ("CLASSIFIER/_draws/groups/posterior/beta", at((0, 0), -1.0)),
        "fewer draws": ("CLASSIFIER/_draws/groups/posterior/beta", lambda a: a[1:]),
        "rows left out twice": ("CLASSIFIER/_left_out/distances", lambda a: np.tile(a, 2)),
        "fewer leave-one-out rows": ("CLASSIFIER/loo_proba_", lambda a: a[1:]),
        "fewer k": ("CLASSIFIER/k_probabilities_", lambda a: a[1:]),
        "a neighbour beyond": ("CLASSIFIER/graph_/neighbors", at((0, 0), 60)),
        "an infinite distance": ("CLASSIFIER/graph_/distances", at((-1, 0), np.inf)),
        "a scale of no number": ("CLASSIFIER/_interval_model/scale/median", float("nan")),
        "one calibration less": ("CLASSIFIER/_interval_model/calibrator/spread", "many"),
        "a unit of no number": ("preparer_/encoder_/parts_/length/unit", float("nan")),
        "no mean": ("preparer_/encoder_/parts_/length/mean", float("inf")),
        "no median": ("preparer_/encoder_/parts_/length/fill", "many"),
        "a level less": ("preparer_/encoder_/parts_/town/names/0", 1),
    },
}  # fmt: skip


def check_refusal(path):
    with pytest.raises(ValueError, match=r"m\.skops is (refused|not a model)") as error:
        load_model(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 800


@pytest.mark.parametrize("name", ["pool", "paper"])
def test_what_the_forger_leaves_alone_is_read(saved, tmp_path, name):
    write(tmp_path / "m.skops", *saved[name])
    load_model(tmp_path / "m.skops")


@pytest.mark.parametrize("what", GRAFTS)
def test_objects_that_no_model_has_are_refused(saved, tmp_path, what):
    forger = Forger(*saved["pool"])
    forger.graft(*GRAFTS[what])
    write(tmp_path / "m.skops", forger.schema, forger.members)
    check_refusal(tmp_path / "m.skops")


@pytest.mark.parametrize("what", ["an altered SVC", "an opener of files", "a generator"])
def test_nothing_of_such_a_file_is_built(saved, tmp_path, monkeypatch, what):
    forger = Forger(*saved["pool"])
    forger.graft(*GRAFTS[what])
    write(tmp_path / "m.skops", forger.schema, forger.members)
    monkeypatch.setattr("skops.io.load", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(ValueError, match="it holds .*, a type that no model of ours has"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    ("name", "what"), [(name, what) for name, changes in CHANGES.items() for what in changes]
)
def test_parts_that_do_not_fit_are_refused(saved, tmp_path, name, what):
    forger = Forger(*saved[name])
    forger.set(*CHANGES[name][what])
    write(tmp_path / "m.skops", forger.schema, forger.members)
    check_refusal(tmp_path / "m.skops")


def test_trees_that_agree_with_their_own_source_are_refused(saved, tmp_path):
    """Both come from the file, so that neither is evidence of the width of the table."""
    forger = Forger(*saved["pool"])
    forger.set(f"{BOOSTED}/source", lambda a: np.zeros(4_000_000, a.dtype))
    forger.set(f"{BOOSTED}/trees/features", lambda a: np.full_like(a, 3_999_999))
    write(tmp_path / "m.skops", forger.schema, forger.members)
    check_refusal(tmp_path / "m.skops")


@pytest.mark.parametrize("forge", [refer_often, refer_to_itself])
def test_references_are_counted(saved, tmp_path, monkeypatch, forge):
    forger = Forger(*saved["pool"])
    forge(forger)
    write(tmp_path / "m.skops", forger.schema, forger.members)
    monkeypatch.setattr("skops.io.load", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(ValueError, match="several parts of its schema read|one number"):
        load_model(tmp_path / "m.skops")
