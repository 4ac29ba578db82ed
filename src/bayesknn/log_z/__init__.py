"""log Z(beta, k): one engine, and the table of it for every beta and k (Section 3.3).

``chains`` runs Swendsen-Wang at one setting, ``reweighting`` says what its draws tell of other k,
``bridge`` takes log Z from one setting to another, ``resampling`` gives every estimate its error,
``ladder`` leads from beta = 0 to the far end at one k. ``path_table`` is the table for
all k; the posterior uses the same along its ridge (:mod:`bayesknn.posterior.ridge`).
"""

from bayesknn.log_z.path_table import log_normalizer_path, path_table
from bayesknn.log_z.table import PathTable

__all__ = ["PathTable", "log_normalizer_path", "path_table"]
