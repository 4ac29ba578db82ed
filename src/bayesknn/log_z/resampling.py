"""Monte Carlo errors by resampling batches of records (Section 3.3; the batch bootstrap).

Records of chains go in, an estimate and 64 replicates of it come out. Every estimate of log Z is
computed from averages over records of chains. A replicate computes it from resampled batches of the
same records; the spread over the replicates is its error, through whatever it goes: integrals,
reweighting, the posterior itself. Row 0 of an array of replicates is the estimate.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

# The estimate itself, and resampled versions of it: 64 give an error to within a tenth, and all
# that follows from log Z is computed as often.
N_REPLICATES = 1 + 64


def join(batches: np.ndarray) -> np.ndarray:
    """Average neighbouring batches of each chain, so that a moderate number of long ones is left.

    From shape (n_chains, n_batches, ...) to (n_joined, ...), of all chains. A remainder at the
    beginning is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.resampling import join
    >>> join(np.arange(80.0).reshape(2, 40)).shape
    (40,)
    """
    n_batches = batches.shape[1]
    # So many that their spread is known to an eighth, and so few that they are long.
    length = max(1, n_batches // 16)
    used = batches[:, n_batches % length :]
    return used.reshape(-1, length, *batches.shape[2:]).mean(axis=1)


def resample(batches: np.ndarray, key: int | tuple[int, ...]) -> np.ndarray:
    """Average over batches, in row 0, and over resampled ones, in every other replicate.

    From shape (n_chains, n_batches, ...) to (n_replicates, ...). The same key and number of batches
    resample alike.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.resampling import resample
    >>> resample(np.arange(8.0).reshape(2, 4), key=0)[0]
    np.float64(3.5)
    """
    joined = join(batches)
    # Not a matrix product: threads of BLAS would get in the way of those of the chains.
    changes = np.einsum("rm,m...->r...", _shares(key, len(joined)), joined)
    return batches.mean(axis=(0, 1)) + changes


def standard_error(replicates: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo error of an estimate, from its replicates along the first axis.

    The spread of those that were resampled; the estimate itself, row 0, is not one of them. Where
    there is no other row, the estimate has no error.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.log_z.resampling import standard_error
    >>> float(standard_error(np.array([9.0, 1.0, 3.0])))
    1.0
    """
    return replicates[1:].std(axis=0) if len(replicates) > 1 else np.zeros_like(replicates[0])


@lru_cache(maxsize=512)
def _shares(key: int | tuple[int, ...], m: int) -> np.ndarray:
    """Return by how much the share of each of m batches is changed in every replicate."""
    counts = np.random.default_rng(key).multinomial(m, np.full(m, 1 / m), N_REPLICATES)
    counts[0] = 1
    # Resampling m batches shows (m - 1) / m of the variance of their mean; and as the variance is
    # itself estimated from m batches, scores have Student's law, of variance (m - 1) / (m - 3).
    return (counts - 1) / m * np.sqrt(m / max(m - 3, 1))
