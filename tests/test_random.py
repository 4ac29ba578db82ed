"""Random numbers: known values, the Python twin, and the ways in which streams could be related."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn._utils.jit import kernel
from bayesknn._utils.random import (
    as_uniform,
    key_of_sweep,
    random_bits,
    seeds_for,
    spawn_keys,
)
from tests.labels import cases
from tests.statistical import check, p_value_of_counts, p_value_of_z, rejects

words = st.integers(0, 2**64 - 1)


@kernel
def _fill(key, n_sweeps, n_sites):
    numbers = np.empty((n_sweeps, n_sites), np.uint64)
    for sweep in range(n_sweeps):
        stream = key_of_sweep(key, np.uint64(sweep))
        for site in range(n_sites):
            numbers[sweep, site] = random_bits(stream, np.uint64(site))
    return numbers


@kernel
def _as_uniform(numbers):
    return np.array([as_uniform(number) for number in numbers])


def test_known_values_of_splitmix64():
    # The published first outputs of splitmix64 seeded with 1234567.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [int(random_bits(np.uint64(1234567), np.uint64(site))) for site in range(5)] == expected


@given(words, words, words)
def test_twin(key, sweep, site):
    before = np.uint64((key - cases.GOLDEN) % cases.WORD)
    assert random_bits(before, np.uint64(0)) == cases.mix(key)
    stream = cases.sweep_key(key, sweep)
    assert key_of_sweep(np.uint64(key), np.uint64(sweep)) == stream
    assert random_bits(np.uint64(stream), np.uint64(site)) == cases.bits(stream, site)


def test_compiled_in_a_loop():
    numbers = _fill(np.uint64(5), 3, 4)
    expected = [[cases.bits(cases.sweep_key(5, t), i) for i in range(4)] for t in range(3)]
    assert numbers.tolist() == expected


def test_uniform_stays_below_one():
    extremes = _as_uniform(np.array([0, 2**11 - 1, 2**11, 2**64 - 1], np.uint64))
    assert extremes.tolist() == [0.0, 0.0, 2.0**-53, 1.0 - 2.0**-53]


def bytes_of(numbers):
    return np.ascontiguousarray(numbers).view(np.uint8)


@pytest.mark.parametrize("axis", ["sites of a sweep", "sweeps of a site", "keys"])
def test_every_byte_is_equidistributed(axis):
    def p_value(n, seed):
        key = spawn_keys(seed, 1)[0]
        if axis == "keys":
            numbers = np.array([_fill(key, 1, 1)[0, 0] for key in spawn_keys(seed, n // 6)])
        else:
            numbers = _fill(key, 1, n)[0] if axis == "sites of a sweep" else _fill(key, n, 1)[:, 0]
        by_place = bytes_of(numbers).reshape(-1, 8)
        counts = np.stack([np.bincount(column, minlength=256) for column in by_place.T])
        return p_value_of_counts(counts, np.full(8 * 256, 1 / (8 * 256)))

    check(p_value, 40_000)


def p_value_of_relation(pairs):
    """P-value function: bits of the one differ from bits of the other half of the time."""

    def p_value(n, seed):
        one, other = pairs(n, seed)
        differ = np.unpackbits(bytes_of(one ^ other).reshape(-1, 8), axis=1).mean(axis=0)
        products = (_as_uniform(one) - 0.5) * (_as_uniform(other) - 0.5) * 12
        root = np.sqrt(len(one))
        return p_value_of_z([*((differ - 0.5) * 2 * root), products.mean() * root])

    return p_value


def neighbouring_sites(n, seed):
    numbers = _fill(spawn_keys(seed, 1)[0], 1, n + 1)[0]
    return numbers[1:], numbers[:-1]


def neighbouring_sweeps(n, seed):
    numbers = _fill(spawn_keys(seed, 1)[0], 2, n)
    return numbers[0], numbers[1]


def sites_along_the_diagonal(n, seed):
    numbers = _fill(spawn_keys(seed, 1)[0], 200, n // 200 + 1)
    return numbers[1:, :-1].ravel(), numbers[:-1, 1:].ravel()


def neighbouring_keys(n, seed):
    key = spawn_keys(seed, 1)[0]
    return _fill(key, 1, n)[0], _fill(key ^ np.uint64(1), 1, n)[0]


def spawned_keys(n, seed):
    one, other = spawn_keys(seed, 2)
    return _fill(one, 1, n)[0], _fill(other, 1, n)[0]


@pytest.mark.parametrize(
    "pairs",
    [
        neighbouring_sites,
        neighbouring_sweeps,
        sites_along_the_diagonal,
        neighbouring_keys,
        spawned_keys,
    ],
)
def test_streams_are_unrelated(pairs):
    check(p_value_of_relation(pairs), 50_000)


def test_chained_streams_are_rejected():
    # Keys that step by the constant that sites step by: each sweep is the last one, shifted.
    def pairs(n, seed):
        stream = int(spawn_keys(seed, 1)[0])
        one = [cases.bits(stream, site) for site in range(n)]
        other = [cases.bits((stream + cases.GOLDEN) % cases.WORD, site) for site in range(n)]
        return np.array(one[1:], np.uint64), np.array(other[:-1], np.uint64)

    assert rejects(p_value_of_relation(pairs), 5000)


def test_no_number_comes_twice():
    numbers = _fill(spawn_keys(3, 1)[0], 500, 1000)
    assert len(np.unique(numbers)) == numbers.size


def test_keys_are_reproducible_and_differ():
    keys = spawn_keys(11, 1000)
    assert keys.dtype == np.uint64
    assert len(set(keys.tolist())) == 1000
    np.testing.assert_array_equal(keys, spawn_keys(11, 1000))
    np.testing.assert_array_equal(keys[:10], spawn_keys(11, 10))
    assert not np.array_equal(keys[:10], spawn_keys(12, 10))


def test_none_takes_fresh_entropy():
    assert spawn_keys(None, 1)[0] != spawn_keys(None, 1)[0]


def test_a_seed_sequence_gives_the_same_draws_twice():
    """Even one that was spawned from: a second fit with it is the first again."""
    parent = np.random.SeedSequence(5)
    for sequence in (parent, parent.spawn(3)[1]):
        once = spawn_keys(sequence, 3)
        np.testing.assert_array_equal(spawn_keys(sequence, 3), once)
        unused = np.random.SeedSequence(sequence.entropy, spawn_key=sequence.spawn_key)
        keys = [child.generate_state(1, np.uint64)[0] for child in unused.spawn(3)]
        np.testing.assert_array_equal(once, keys)
    assert len({int(key) for key in [*spawn_keys(5, 3), *spawn_keys(parent.spawn(1)[0], 3)]}) == 6


def test_seeds_know_what_they_are_for():
    def first(*arguments):
        return int(seeds_for(*arguments).generate_state(1, np.uint64)[0])

    parent = np.random.SeedSequence(5)
    different = [
        *(first(0, *data) for data in (["chain", "a"], ["chain", "b"], ["grid", "a"])),
        *(first(0, *data) for data in (["chaina"], ["chain"])),
        *(first(seeds, "chain") for seeds in (parent, parent.spawn(1)[0])),
        first(1, "chain", "a"),
    ]
    assert len(set(different)) == len(different)
    assert first(0, "chain", "a") == different[0]
    assert first(parent, "chain") == first(5, "chain")


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_advanced(make):
    generator = make(8)
    first, second = spawn_keys(generator, 2), spawn_keys(generator, 2)
    assert not set(first.tolist()) & set(second.tolist())
    np.testing.assert_array_equal(first, spawn_keys(make(8), 2))


def test_numpy_integers_are_seeds():
    np.testing.assert_array_equal(spawn_keys(np.int64(4), 2), spawn_keys(4, 2))


@pytest.mark.parametrize("random_state", [-1, 1.5, "seed", [1, 2]])
def test_bad_seeds_are_refused(random_state):
    with pytest.raises(ValueError, match="random_state must be"):
        spawn_keys(random_state, 1)
