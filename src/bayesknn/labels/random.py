"""Random numbers as a pure function of (key, sweep, site).

Nothing is stored: the past of a coupling can be replayed, and no result depends on threads.
``_sweep_key`` gives each sweep a splitmix64 stream of its own; ``_bits`` reads one entry of it.
Keys are never chained from one another: each comes from a ``SeedSequence`` or from counters,
because chaining in two places reuses streams without any small test noticing.
"""

import numpy as np

from bayesknn._jit import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SWEEP = np.uint64(0xD1342543DE82EF95)
_ONE = np.uint64(1)
_UNIT = 2.0**-53


@kernel(inline="always")
def _mix(z):
    """Scramble 64 bits (the finaliser of splitmix64, a bijection)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel(inline="always")
def _sweep_key(key, sweep):
    """Key of the stream of one sweep; both arguments and the result are uint64."""
    return _mix(key + (sweep + _ONE) * _SWEEP)


@kernel(inline="always")
def _bits(sweep_key, site):
    """Sixty-four random bits of one site within a sweep."""
    return _mix(sweep_key + (site + _ONE) * _GOLDEN)


@kernel(inline="always")
def _uniform(bits):
    """Turn 64 random bits into a double in [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * _UNIT


def as_seed_sequence(random_state) -> np.random.SeedSequence:
    """Turn what users pass as ``random_state`` into a ``SeedSequence``.

    Parameters
    ----------
    random_state : None, int, SeedSequence, Generator or RandomState
        ``None`` takes entropy from the system. A generator is asked for 128 bits, which
        advances it, so that calling twice with the same generator gives different draws.

    Returns
    -------
    numpy.random.SeedSequence

    Examples
    --------
    >>> from bayesknn.labels.random import as_seed_sequence
    >>> as_seed_sequence(7).entropy
    7
    """
    if random_state is None or isinstance(random_state, int | np.integer):
        if random_state is not None and random_state < 0:
            raise ValueError(f"random_state must be >= 0, got {random_state}")
        return np.random.SeedSequence(None if random_state is None else int(random_state))
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        words = random_state.integers(2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence(words.tolist())
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(2**32, size=4, dtype=np.uint32)
        return np.random.SeedSequence(words.tolist())
    raise ValueError(
        "random_state must be None, an int, a SeedSequence, a Generator or a RandomState, "
        f"got {type(random_state).__name__}"
    )


def spawn_keys(random_state, n_keys: int) -> np.ndarray:
    """Independent 64-bit keys, one per call of a kernel.

    Parameters
    ----------
    random_state : None, int, SeedSequence, Generator or RandomState
        See :func:`as_seed_sequence`.
    n_keys : int
        How many.

    Returns
    -------
    ndarray of shape (n_keys,), dtype uint64

    Examples
    --------
    >>> from bayesknn.labels.random import spawn_keys
    >>> spawn_keys(0, 2).shape
    (2,)
    """
    children = as_seed_sequence(random_state).spawn(n_keys)
    return np.array([child.generate_state(1, np.uint64)[0] for child in children], dtype=np.uint64)
