"""Saved pools whose numbers were changed: an error on loading, never a crash or a prediction."""

import json
import subprocess
import sys

# A crash would end the tests: every changed model is loaded in a process of its own.
SCRIPT = """
import copy, json, os, sys
import numpy as np
from bayesknn import PooledNeighborsClassifier

rng = np.random.default_rng(0)
y = np.arange(300) % 3
X = rng.normal(size=(300, 3)) + y[:, None]
members = ("evidence", "discriminant", "boosted")
fitted = PooledNeighborsClassifier(members, max_neighbors=9, random_state=0)
state = fitted.fit(X, y).__getstate__()
fitted.predict_influence(X[:2])  # compiles what is used below


def change(whole, path, new):
    for key in path[:-1]:
        whole = whole[key]
    old = whole[path[-1]]
    if isinstance(old, np.ndarray):
        old.flags.writeable = True
        old[..., -1] = new
    else:
        whole[path[-1]] = new


def load_and_predict(path, new):
    changed = copy.deepcopy(state)
    change(changed, path, new)
    clf = PooledNeighborsClassifier()
    try:
        clf.__setstate__(changed)
    except ValueError as error:
        return 0 if "must hold integers" in str(error) or "saved model" in str(error) else 3
    clf.predict_interval(X)
    clf.predict_influence(X)
    return 2


found = {}
for path, new in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        os._exit(load_and_predict(path, new))
    found[f"{path[-1]} = {new}"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps(found))
"""

SPACE = ["_views", "discriminant", "space"]
BOOSTED = ["_views", "boosted"]
TREES = [*BOOSTED, "trees"]
CHANGES = [
    *([[*SPACE, "k_values"], k] for k in (0, -5, -(2**40), 299, 300, 2**20, 2**40)),
    *([[*SPACE, "searched", "labels"], g] for g in (3, 2**20, 2**32 - 1)),
    *([[*TREES, "features"], j] for j in (-1, 3, 2**40)),
    *([[*TREES, "children"], node] for node in (-1, 1, 14, 2**40)),
    *([[*BOOSTED, "rounds"], t] for t in (0, 101, 2**40)),
    *([["_reach_at"], t] for t in (-1, -3, 10, 10**6)),
]


def test_changed_numbers_are_refused():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=json.dumps(CHANGES), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    wrong = {what: code for what, code in json.loads(done.stdout).items() if code != 0}
    assert not wrong, "2: it predicted, 3: another error, below 0: it crashed"
    assert len(json.loads(done.stdout)) == len(CHANGES)
