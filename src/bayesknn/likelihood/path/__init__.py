"""Path sampling: the table of log Z(beta, k) for all k and beta (Section 3.3, sec:path).

``d log Z / d beta = E[S_k] / k`` and ``log Z(0, k) = n log G``. The paper estimates E[S] by Gibbs
sampling on a 50 x 12 grid and integrates by the trapezium rule (``paper.py``). By default the
chains are Swendsen-Wang, which do not get stuck at large beta, the other end of the path is used
too, and work goes where it is needed (``adaptive.py``). ``compute.py`` is where to start reading.
"""

from bayesknn.likelihood.path.compute import log_normalizer_path, path_table
from bayesknn.likelihood.path.table import PathTable

__all__ = ["PathTable", "log_normalizer_path", "path_table"]
