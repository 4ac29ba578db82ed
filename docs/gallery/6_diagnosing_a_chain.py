"""
Diagnosing a chain
==================

The default, ``inference="grid"``, uses no Markov chain on (beta, k). The algorithms of the paper
do: Metropolis, auxiliary variables and exchange. This example shows how to check whether such a
chain has converged.
"""

# %%
# A chain that is too short
# -------------------------
# Each of four chains makes 60 draws after 20 iterations of warm-up. A ``MixingWarning`` describes
# the problem; it is caught here in order to print it.

import warnings

from bayesknn.datasets import load_ripley
from bayesknn.graph import NeighborGraph
from bayesknn.likelihood import CoherentLikelihood, PseudoLikelihood
from bayesknn.posterior import diagnose, exchange, grid_posterior, metropolis

ripley = load_ripley()
graph = NeighborGraph.from_points(ripley.X_train, k_max=125)
pseudo = PseudoLikelihood(graph, ripley.y_train)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    short = metropolis(pseudo, beta_max=4.0, n_draws=60, n_warmup=20, random_state=0)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")

# %%
# The traces show the same problem: the chains have not visited the same values.

from bayesknn.plots import PosteriorDisplay

PosteriorDisplay.from_posterior(short)

# %%
# A longer chain
# --------------
# R-hat compares the chains with each other. The effective sample size is the number of independent
# draws that would give the same Monte Carlo error.

chain = metropolis(pseudo, beta_max=4.0, n_draws=10_000, random_state=0)
diagnostics = diagnose(chain)
for name in ("beta", "k"):
    mean = float(chain["posterior"][name].mean())
    print(
        f"{name:5s} mean {mean:.3f} +- {diagnostics.mcse[name]:.3f}, "
        f"R-hat {diagnostics.rhat[name]:.4f}, effective sample size {diagnostics.ess[name]:.0f} "
        f"of {chain['posterior'][name].size} draws"
    )
print("warnings:", diagnostics.messages or "none")

# %%
PosteriorDisplay.from_posterior(chain)

# %%
# Comparison with quadrature
# --------------------------
# The same posterior can be computed on a grid without a chain. The difference of the two means
# should be a few Monte Carlo errors at most.

grid = grid_posterior(pseudo, beta_max=4.0)
gap = float(chain["posterior"]["beta"].mean()) - grid.beta_mean
print(
    f"beta: mean on the grid {grid.beta_mean:.4f}, "
    f"chain minus grid {gap / diagnostics.mcse['beta']:+.1f} standard errors"
)

# %%
# A chain that draws labels
# -------------------------
# ``exchange`` avoids the unknown normalising constant by drawing a vector of labels in every move.
# The acceptance rates are in its ``sample_stats``. With ``label_sampler="perfect"`` the labels are
# exact draws, so that the finite length of the chain is its only source of error.

coherent = CoherentLikelihood(graph, ripley.y_train)
tree = exchange(coherent, beta_max=4.0, n_draws=700, n_warmup=200, random_state=0)
diagnostics = diagnose(tree)
print(f"acceptance rate of each chain: {diagnostics.acceptance.round(2).tolist()}")
print(f"beta {float(tree['posterior']['beta'].mean()):.3f} +- {diagnostics.mcse['beta']:.3f}")

# %%
# The draws are an ``xarray.DataTree`` in the layout of ArviZ, whose plots and summaries can be used
# directly. ``save_posterior`` writes them to a NetCDF file.

print(tree["posterior"])
