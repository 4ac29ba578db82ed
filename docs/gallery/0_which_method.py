"""
One data set through every method
=================================

The Pima diabetes data have seven measurements of 200 training and 332 test points. This example
fits four methods to them: the classical vote, the paper's model, its pseudo-likelihood and the
ensemble. It compares their test log-loss and error rate.
"""

# %%
import numpy as np
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesknn import (
    BayesianKNeighborsClassifier,
    ClassicalKNeighborsClassifier,
    ColumnSelector,
    PooledNeighborsClassifier,
)
from bayesknn.datasets import load_pima

pima = load_pima()
X, y = pima.X_train, pima.y_train
methods = {
    "classical vote": make_pipeline(StandardScaler(), ClassicalKNeighborsClassifier()),
    "coherent": make_pipeline(StandardScaler(), BayesianKNeighborsClassifier(random_state=0)),
    "pseudo-likelihood": make_pipeline(StandardScaler(), BayesianKNeighborsClassifier("pseudo")),
    "pool": PooledNeighborsClassifier(random_state=0),
}
ill = np.mean(y == "Yes")
print(f"{'class frequencies':18} log-loss {log_loss(pima.y_test, [[1 - ill, ill]] * 332):.3f}")
for name, method in methods.items():
    probabilities = np.clip(method.fit(X, y).predict_proba(pima.X_test), 1e-5, 1)
    error = 1 - method.score(pima.X_test, pima.y_test)
    print(f"{name:18} log-loss {log_loss(pima.y_test, probabilities):.3f}, error {error:.3f}")

# %%
# The classical vote returns class proportions among the neighbours, which are poor estimates of
# probabilities. The paper's (coherent) model gives a posterior of k and beta:

bayes = methods["coherent"][-1]
print(f"k: mean {bayes.k_values_ @ bayes.k_probabilities_:.1f}; beta: mean {bayes.beta_mean_:.2f}")

# %%
# The ensemble is meant for predicted probabilities. ``pool_weights_`` has the weight of each base
# model, and ``feature_relevance_`` the relevance of each column to its trees, relative to permuted
# columns.

pool = methods["pool"]
for member, weight in pool.pool_weights_.items():
    print(f"{member:13} weight {weight:.2f}, leave-one-out {pool.member_log_scores_[member]:.3f}")
for column, relevance in zip(pima.feature_names, pool.feature_relevance_, strict=True):
    print(f"{column:6} {relevance:.2f}")

# %%
# Which columns
# -------------
# ``ColumnSelector`` selects columns by forward search. ``"pseudo-evidence"`` uses the evidence of
# the pseudo-likelihood, which takes about a second; ``"evidence"``, that of the paper's model,
# takes longer.

import warnings

import matplotlib.pyplot as plt
import pandas as pd

from bayesknn.plots import ColumnPathDisplay

selector = ColumnSelector("pseudo-evidence").fit(pd.DataFrame(X, columns=pima.feature_names), y)
print("chosen:", ", ".join(selector.get_feature_names_out()))
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ColumnPathDisplay.from_estimator(selector, ax=ax)

# %%
# The search returns one set of columns. The posterior over all sets shows how certain this choice
# is. The horizontal axis is divided into one interval for each set, of the length of its posterior
# probability. The row of a column is filled where the set contains the column, so that its total
# filled length is the inclusion probability of the column.

from bayesknn.plots import ColumnSetsDisplay

figure, ax = plt.subplots(figsize=(8, 3.2), layout="constrained")
ColumnSetsDisplay.from_estimator(selector, ax=ax)

# %%
# A limit of forward search
# -------------------------
# On a chess board, one coordinate alone carries no information about the colour of a field. With
# two noise columns added, the first step of the search selects an arbitrary column and reports that
# it is not informative. The posterior over sets and the ensemble find both coordinates.

rng = np.random.default_rng(0)
board = rng.uniform(-1, 1, size=(200, 4))
colour = np.where(board[:, 0] * board[:, 1] > 0, "black", "white")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # The selector warns that no column is informative.
    stuck = ColumnSelector("pseudo-evidence", max_columns=1).fit(board, colour)
print(f"best single column: {stuck.scores_[0]:.1f}; without any: {stuck.null_score_:.1f}")
print(f"informative: {stuck.informative_}")
sets = ColumnSelector("pseudo-evidence").fit(board, colour).inclusion_probabilities_
print(f"inclusion probabilities, from all sets of columns: {sets.round(2).tolist()}")
pooled = PooledNeighborsClassifier(random_state=0).fit(board, colour)
print(f"relevance to the pool: {pooled.feature_relevance_.round(2).tolist()}")
print(f"leave-one-out log score of the pool: {200 * pooled.loo_log_score_:.1f}")
