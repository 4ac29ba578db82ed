"""
Comparing the approximations
============================

The posterior of (beta, k) depends on the normalising constant Z(beta, k), a sum over all
labellings. The paper compares likelihoods that avoid it. This example compares the posterior of the
paper's (coherent) model, which includes the constant, with those of the pseudo-likelihood and of
the product of Holmes and Adams, on Ripley's data.
"""

# %%
from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, HolmesAdamsLikelihood, PseudoLikelihood
from bayesknn.posterior import grid_posterior

ripley = load_ripley()
graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
kinds = {
    "coherent": (CoherentLikelihood, 4.0),
    "pseudo": (PseudoLikelihood, 4.0),
    "Holmes-Adams": (HolmesAdamsLikelihood, 8.0),
}
posteriors = {
    name: grid_posterior(kind(graph, ripley.y_train), beta_max=beta_max, random_state=0)
    for name, (kind, beta_max) in kinds.items()
}
for name, posterior in posteriors.items():
    print(
        f"{name:13s} E beta {posterior.beta_mean:.3f} ({posterior.beta_sd:.3f}), "
        f"E k {posterior.k_mean:5.1f} ({posterior.k_sd:.1f})"
    )

# %%
# As in the paper, the posterior of the pseudo-likelihood is very different from the coherent one.
# Holmes and Adams count k neighbours of a point, the others 2 k on average, so that their beta is
# about twice as large for the same strength of dependence.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
for name, posterior in posteriors.items():
    ax.plot(range(1, 126), posterior.k_probabilities, label=name)
ax.set(xlabel="k", ylabel="P(k | y)")
ax.legend(frameon=False)

# %%
# Effect on predictions
# ---------------------
# Most points get the same class. The coherent probabilities are closer to 0.5, on Ripley's data
# closer than the test points justify (:doc:`/methods`).

from bayesknn.model import BoltzmannModel
from bayesknn.predictive import PosteriorNodes, Predictive

model, probabilities = BoltzmannModel(graph, n_classes=2), {}
for name in ("coherent", "pseudo"):
    nodes = PosteriorNodes.from_grid(posteriors[name])
    rule = Predictive(model, ripley.y_train, nodes)
    probabilities[name] = rule.probabilities(ripley.X_test)
figure, ax = plt.subplots(figsize=(4.8, 4.8), layout="constrained")
ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
ax.plot(probabilities["pseudo"][:, 1], probabilities["coherent"][:, 1], "o", markersize=3.5)
ax.set(xlabel="P(class 1), pseudo", ylabel="P(class 1), coherent")

# %%
# The normalising constant
# ------------------------
# At small k, log Z can be computed exactly by variable elimination. The estimate by path sampling
# agrees with it within its Monte Carlo error.

from bayesknn.likelihood import log_normalizer

exact = log_normalizer(graph, beta=2.0, k=3, n_classes=2, method="exact")
path = log_normalizer(graph, beta=2.0, k=3, n_classes=2, method="path", random_state=0)
print(f"log Z(2, 3): exact {exact.value:.4f}, path sampling {path.value:.2f} +- {path.error:.2f}")
