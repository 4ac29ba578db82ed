"""log Z(beta, k): draws, estimates from them, and the table for every beta and k (Section 3.3).

``log_z`` has what a likelihood asks of log Z, and the exact one. Everything else is one loop over
three values, :meth:`~bayesknn.log_z.simulation.Simulation.run`:

- *records* of chains (``records``), which ``chains`` and ``simulation`` make: all that is random;
- *estimates* from records alone, with replicates that carry their error: ``mbar`` where draws
  overlap, ``estimate`` from one pair of chains to the next and at the far end of a path;
- *designs*, which plan the next records from the last estimate: ``along_beta`` at one k,
  ``path_table`` everywhere, and :mod:`bayesknn.posterior.quadrature.mesh` around the posterior.

Pilots decide where chains run and how long, and are left out of every estimate.
"""

from bayesknn.log_z.path_table import log_normalizer_path, path_table
from bayesknn.log_z.table import PathTable

__all__ = ["PathTable", "log_normalizer_path", "path_table"]
