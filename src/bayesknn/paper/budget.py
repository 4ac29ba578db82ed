"""How much is computed: the paper's own iteration numbers, a quick look, or a test.

``FULL`` has the paper's numbers wherever it gives them. ``QUICK`` keeps everything that the
pictures need within a couple of minutes on two cores. ``TINY`` only shows that everything runs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """The numbers that decide how long each item takes.

    Attributes
    ----------
    name : str
    n_chains : int
        Chains like each of the paper's, which ran one; their spread is the error of its values.
    long_chain, perfect_chain, pima_chain, fixed_k_chain : tuple of (int, int)
        Burn-in and draws kept: of the chains on the pseudo-likelihood and the path table, of the
        auxiliary-variable chains on Ripley's data, of those on Pima (where the burn-in comes
        after the first stage), of the chains at fixed k.
    pima_first_stage : int
        Iterations after which the plug-in is replaced.
    n_path_betas : int
        Values of beta of the path-sampling grid.
    path_sweeps : tuple of (int, int)
        Gibbs sweeps at each grid point, burn-in and counted.
    reference_sweeps : int
        Swendsen-Wang sweeps wherever a true expectation is needed.
    tolerance : float
        Monte Carlo error asked of the exact posterior.
    n_partitions : int
        Random partitions of the glass data.
    n_timed : int
        Moves that are timed.
    resolution : int
        Points a side of the maps.
    n_replicates : int
        Data sets drawn for each beta where estimators are studied.
    n_perfect : int
        Perfect draws of the four-class experiment at each beta.
    """

    name: str
    n_chains: int
    long_chain: tuple[int, int]
    perfect_chain: tuple[int, int]
    fixed_k_chain: tuple[int, int]
    pima_first_stage: int
    pima_chain: tuple[int, int]
    n_path_betas: int
    path_sweeps: tuple[int, int]
    reference_sweeps: int
    tolerance: float
    n_partitions: int
    n_timed: int
    resolution: int
    n_replicates: int
    n_perfect: int


TINY = Budget(
    name="tiny",
    n_chains=2,
    long_chain=(200, 200),
    perfect_chain=(50, 100),
    fixed_k_chain=(50, 100),
    pima_first_stage=50,
    pima_chain=(50, 100),
    n_path_betas=9,
    path_sweeps=(20, 60),
    reference_sweeps=60,
    tolerance=0.3,
    n_partitions=3,
    n_timed=20,
    resolution=20,
    n_replicates=4,
    n_perfect=20,
)
QUICK = Budget(
    name="quick",
    n_chains=4,
    long_chain=(4000, 10_000),
    perfect_chain=(1000, 4000),
    fixed_k_chain=(500, 2000),
    pima_first_stage=2000,
    pima_chain=(2000, 4000),
    n_path_betas=50,
    path_sweeps=(500, 1000),
    reference_sweeps=1000,
    tolerance=0.05,
    n_partitions=100,
    n_timed=1000,
    resolution=120,
    n_replicates=40,
    n_perfect=400,
)
FULL = Budget(
    name="full",
    n_chains=4,
    long_chain=(40_000, 10_000),
    perfect_chain=(10_000, 10_000),
    fixed_k_chain=(10_000, 10_000),
    pima_first_stage=10_000,
    pima_chain=(30_000, 20_000),
    n_path_betas=50,
    path_sweeps=(500, 10_000),
    reference_sweeps=4000,
    tolerance=0.02,
    n_partitions=200,
    n_timed=50_000,
    resolution=200,
    n_replicates=200,
    n_perfect=2000,
)
BUDGETS = {budget.name: budget for budget in (TINY, QUICK, FULL)}
