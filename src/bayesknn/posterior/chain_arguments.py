"""The arguments that all chains on (beta, k) have, described once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_PRIOR = """\
    prior : Prior, array-like, callable, optional
        It sets the range of k and beta. Uniform on {1..k_max} x [0, beta_max] by default.
    beta_max : float, optional
        Needed unless ``prior`` knows it.
"""
_LABELS = """\
    label_sampler : {"swendsen-wang", "perfect", "gibbs"}, default="swendsen-wang"
        How labels are drawn in each move. With perfect draws the chain is exact; the others leave
        a bias if ``n_sweeps`` is too small, which is looked for at the end.
    n_sweeps : int, optional
        Sweeps for each draw: 20 of Swendsen-Wang from the data, or the paper's 500 of Gibbs from
        random labels. Perfect draws need no such number.
"""
_SCHEME = """\
    scheme : {"alternating", "joint"}, default="alternating"
        Moves of beta and of k by turns, or the paper's move of both at once.
"""
_CHAINS = """\
    n_chains : int, default=4
    n_draws : int, default=5000
        Draws of each chain, after warm-up.
    n_warmup : int, default=1000
        Draws at the beginning that adapt tau and r and are left out of the posterior.
"""
_THIN = """\
    thin : int, default=8
        Moves from one draw to the next.
"""
_RUN = """\
    tau : float, optional
        Standard deviation of the walk on logit(beta / beta_max). ``None`` adapts it during
        warm-up; joint moves take the paper's, the square root of .05.
    r : int, optional
        Reach of the walk on k. ``None`` adapts it during warm-up; joint moves take the paper's, 3.
    random_state : None, int, SeedSequence, Generator or RandomState
        The data are mixed in: two data sets never share their random numbers.
    n_jobs : int, optional
        As in joblib; the result is the same for any number.
    verbose : int, default=0
        0 for silence.

    Returns
    -------
    xarray.DataTree
        In ArviZ's layout: ``posterior`` (beta, k over chain and draw), ``sample_stats`` (what the
        moves did), ``observed_data``, and the same of warm-up.

    Raises
    ------
    SamplingInterrupted
        On Ctrl-C, a ``KeyboardInterrupt`` that holds the draws finished by then.
"""
_COALESCENCE = """\
    CoalescenceError
        If a perfect draw is not found within a past of 65,536 sweeps.
"""
_PARTS = {
    "prior": _PRIOR,
    "labels": _LABELS,
    "scheme": _SCHEME,
    "chains": _CHAINS,
    "thin": _THIN,
    "run": _RUN,
    "coalescence": _COALESCENCE,
}


def describe_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put the shared descriptions in a docstring where it says ``<name>`` on a line of its own.

    Examples
    --------
    >>> from bayesknn.posterior.chain_arguments import describe_arguments
    >>> @describe_arguments
    ... def run(thin):
    ...     '''Run.
    ...
    ...     <thin>
    ...     '''
    >>> "Moves from one draw to the next" in run.__doc__
    True
    """
    # Python -OO leaves no docstring.
    for name, text in _PARTS.items() if function.__doc__ else ():
        lines = (function.__doc__ or "").splitlines(keepends=True)
        function.__doc__ = "".join(text if line.strip() == f"<{name}>" else line for line in lines)
    return function
