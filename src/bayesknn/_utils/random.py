"""Seeds, and random numbers as a pure function of (key, sweep, site).

Nothing is stored: the past of a coupling can be replayed, and no result depends on threads.
``key_of_sweep`` gives each sweep a splitmix64 stream of its own; ``random_bits`` reads one entry.
A key comes from a ``SeedSequence``, or is itself a random number: the bits at a counter that is
read for nothing else. No key is used for two purposes, nor computed from another by adding to it:
streams that overlap are not noticed by any small test.
"""

import hashlib
import json
from enum import IntEnum
from typing import Any

import numpy as np

from bayesknn._utils.jit import inline_kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# What a chain starts from is drawn as if by the sweep before the first.
START_SWEEP = np.uint64(2**64 - 1)


class Purpose(IntEnum):
    """What chains of labels are run for, in the keys that tell their streams apart.

    A turn or a phase may be added to the first two, of which there are fewer than a hundred.
    """

    PILOT = 100
    PILOT_OF_PHASE = 200
    LOG_Z_ROUGHLY = 1000
    MESH = 5000
    LOG_Z = 7000


def mix_bits(z: Any) -> Any:
    """Scramble 64 bits, or an array of them (the finaliser of splitmix64, a bijection)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


_mix = inline_kernel(mix_bits)


@inline_kernel
def key_of_sweep(key, sweep):
    """Key of the stream of one sweep; both arguments and the result are uint64."""
    return _mix(key + (sweep + np.uint64(1)) * np.uint64(0xD1342543DE82EF95))


@inline_kernel
def random_bits(sweep_key, site):
    """Sixty-four random bits of one site within a sweep."""
    return _mix(sweep_key + (site + np.uint64(1)) * GOLDEN)


@inline_kernel
def as_uniform(bits):
    """Turn 64 random bits into a double in [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


def as_seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Turn what users pass as ``random_state`` into a ``SeedSequence`` of its own.

    Parameters
    ----------
    random_state : None, int, SeedSequence, Generator or RandomState
        ``None`` takes entropy from the system. A ``SeedSequence`` is copied as if it had not been
        spawned from, so that passing it twice gives the same draws twice. A generator is asked
        for 128 bits, which advances it: passing it twice gives different draws.

    Returns
    -------
    numpy.random.SeedSequence
    """
    if random_state is None or isinstance(random_state, int | np.integer):
        if random_state is not None and random_state < 0:
            raise ValueError(f"random_state must be >= 0, got {random_state}")
        return np.random.SeedSequence(None if random_state is None else int(random_state))
    if isinstance(random_state, np.random.SeedSequence):
        given = random_state
        return np.random.SeedSequence(
            given.entropy, spawn_key=given.spawn_key, pool_size=given.pool_size
        )
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return np.random.SeedSequence(np.frombuffer(random_state.bytes(16), "<u4").tolist())
    raise ValueError(
        "random_state must be None, an int, a SeedSequence, a Generator or a RandomState, "
        f"got {type(random_state).__name__}"
    )


def seeds_for(random_state: Any, *data: str) -> np.random.SeedSequence:
    """Mix what the numbers are for into ``random_state``.

    With one ``random_state`` for many data sets, chains that share their random numbers share
    their errors too. So whatever is drawn about data is drawn from seeds that know them.

    Parameters
    ----------
    random_state : None, int, SeedSequence, Generator or RandomState
        See :func:`as_seed_sequence`.
    *data : str
        The purpose, and the fingerprints of the model and of the labels.

    Returns
    -------
    numpy.random.SeedSequence
    """
    seeds = as_seed_sequence(random_state)
    digest = hashlib.sha256(json.dumps(data).encode()).digest()[:16]
    words = np.frombuffer(digest, "<u4").tolist()
    return np.random.SeedSequence(
        seeds.entropy, spawn_key=(*seeds.spawn_key, *words), pool_size=seeds.pool_size
    )


def spawn_keys(random_state: Any, n_keys: int) -> np.ndarray:
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
    >>> from bayesknn._utils.random import spawn_keys
    >>> spawn_keys(0, 2).shape
    (2,)
    """
    children = as_seed_sequence(random_state).spawn(n_keys)
    return np.array([child.generate_state(1, np.uint64)[0] for child in children], dtype=np.uint64)
