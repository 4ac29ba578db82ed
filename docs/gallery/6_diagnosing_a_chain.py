"""
Diagnosing a chain
==================

``inference="grid"``, the default, has no chain to diagnose. The paper's algorithms are chains,
and they are here: Metropolis, auxiliary variables and exchange. How does one see whether such a
chain can be believed?
"""

# %%
# A chain that is too short
# -------------------------
# 60 draws of each of four chains, after hardly any warm-up. A ``MixingWarning`` says what is wrong
# in words; we catch it to print it.

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
# The traces show it: the chains have not visited the same values.

from bayesknn.plots import PosteriorDisplay

PosteriorDisplay.from_posterior(short)

# %%
# Long enough
# -----------
# R-hat compares the chains with each other; the effective sample size says how many independent
# draws the dependent ones are worth; the Monte Carlo error follows from it.

chain = metropolis(pseudo, beta_max=4.0, n_draws=10_000, random_state=0)
found = diagnose(chain)
for name in ("beta", "k"):
    mean = float(chain["posterior"][name].mean())
    print(
        f"{name:5s} mean {mean:.3f} +- {found.mcse[name]:.3f}, R-hat {found.rhat[name]:.4f}, "
        f"{found.ess[name]:.0f} effective of {chain['posterior'][name].size} draws"
    )
print("warnings:", found.messages or "none")

# %%
PosteriorDisplay.from_posterior(chain)

# %%
# Against an answer without a chain
# ---------------------------------
# The same posterior is a sum over a grid. The chain must agree within its own error.

grid = grid_posterior(pseudo, beta_max=4.0)
gap = float(chain["posterior"]["beta"].mean()) - grid.beta_mean
print(
    f"beta: grid {grid.beta_mean:.4f}, chain off by {gap / found.mcse['beta']:+.1f} of its errors"
)

# %%
# A chain that draws labels
# -------------------------
# ``exchange`` gets rid of the unknown constant by drawing a whole set of labels in every move. Its
# ``sample_stats`` tell how often moves were accepted. With ``label_sampler="perfect"`` the draws
# are exact, and the chain's only error is its length.

coherent = CoherentLikelihood(graph, ripley.y_train)
tree = exchange(coherent, beta_max=4.0, n_draws=700, n_warmup=200, random_state=0)
found = diagnose(tree)
print(f"moves accepted, by chain: {found.acceptance.round(2).tolist()}")
print(f"beta {float(tree['posterior']['beta'].mean()):.3f} +- {found.mcse['beta']:.3f}")

# %%
# The draws are in ArviZ's layout, an ``xarray.DataTree``, so that its plots and summaries work on
# them; ``save_posterior`` writes them to a NetCDF file.

print(tree["posterior"])
