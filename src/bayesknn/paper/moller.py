"""The paper's own auxiliary-variable chain: started at its plug-in (Sections 3.4 and 4).

"Starting from the pseudo-likelihood estimate and using this very value for the plug-in": the
chain begins at (beta_hat, k_hat) with auxiliary labels drawn there. The package's chains start
from dispersed points, so that R-hat can tell whether they mix; they refresh the auxiliary labels,
which the paper's do not, and without that a chain that starts away from its plug-in does not move
for tens of thousands of iterations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayesknn.labels import spawn_keys
from bayesknn.labels.label_sampler import draw_labels, make_label_sampler
from bayesknn.likelihood import CoherentLikelihood
from bayesknn.model import Prior
from bayesknn.posterior.auxiliary_variables import AuxiliarySampler
from bayesknn.posterior.chains import sample_posterior
from bayesknn.posterior.label_chains import State
from bayesknn.posterior.plug_in import first_plug_in
from bayesknn.posterior.proposals import plan_walk


class PaperSampler(AuxiliarySampler):
    """Chains that start at the plug-in."""

    def init(self, key: np.uint64) -> State:
        """Return the plug-in with labels drawn there."""
        beta, k = self.plug_in
        theta = math.log(beta / (self.walk.beta_max - beta))
        sampler = self.label_sampler.compiled()
        n_apart = draw_labels(sampler, beta, k, spawn_keys(int(key), 1)[0])
        state = self.start(theta, k)
        assert n_apart == 0, "the bonds meet within tens of sweeps at any beta"
        assert state is not None, "the plug-in is where the prior is positive"
        return state._replace(labels=sampler.labels.copy())


def moller(
    likelihood: CoherentLikelihood,
    prior: Prior,
    label_sampler: str,
    plug_in: tuple[float, int] | None = None,
    *,
    n_first_stage: int = 0,
    n_chains: int,
    n_warmup: int,
    n_draws: int,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """Run the paper's chains: joint moves, tau^2 = .05, r = 3, no refreshing.

    Parameters
    ----------
    likelihood : CoherentLikelihood
    prior : Prior
    label_sampler : {"perfect", "gibbs"}
        Gibbs draws take 500 sweeps.
    plug_in : tuple of (beta, k), optional
        The maximum of the pseudo-likelihood by default.
    n_first_stage : int
        Iterations after which the plug-in is replaced by the average over them; 0 for never.
    n_chains, n_warmup, n_draws : int
    random_state, n_jobs
        As in :func:`bayesknn.posterior.auxiliary`.

    Returns
    -------
    xarray.DataTree
        Warm-up includes the first stage.

    Examples
    --------
    >>> from bayesknn.paper.moller import moller
    >>> from bayesknn.paper.samples import quietly
    >>> from bayesknn.paper.setting import Setting
    >>> study = Setting().ripley
    >>> tree, messages = quietly(
    ...     lambda: moller(study.coherent, study.prior, "perfect", (1.45, 13), n_chains=1,
    ...                    n_warmup=0, n_draws=20, random_state=0)
    ... )
    >>> dict(tree["posterior"].sizes)
    {'chain': 1, 'draw': 20}
    """
    walk, tuning = plan_walk(prior.beta_max, prior.k_max, "joint", n_first_stage + n_warmup)
    sampler = PaperSampler(
        prior,
        walk,
        tuning,
        thin=1,
        likelihood=likelihood,
        label_sampler=make_label_sampler(likelihood.model, likelihood.labels, label_sampler),
        plug_in=first_plug_in(likelihood, prior) if plug_in is None else plug_in,
        updates=(n_first_stage,) if n_first_stage else (),
        n_refresh=0,
    )
    return sample_posterior(
        sampler,
        n_chains=n_chains,
        n_draws=n_draws,
        random_state=random_state,
        n_jobs=n_jobs,
    )
