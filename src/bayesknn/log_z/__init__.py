"""log Z(beta, k): draws, estimates from them, and the table for every beta and k (Section 3.3).

``log_z`` has what a likelihood asks of log Z, and the exact one. ``chains`` runs Swendsen-Wang at
one setting, ``records`` has the estimates from what it recorded and their errors, and ``mbar``
makes one estimate of all draws: so the posterior is computed
(:mod:`bayesknn.posterior.quadrature.mesh`). ``path`` leads from beta = 0 to the far end at one k,
and ``path_table`` is the table for all k.
"""

from bayesknn.log_z.path_table import log_normalizer_path, path_table
from bayesknn.log_z.table import PathTable

__all__ = ["PathTable", "log_normalizer_path", "path_table"]
