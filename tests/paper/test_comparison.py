"""Tests of the verdicts on rounded numbers, random numbers, sentences and lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesknn.paper.comparison import Estimate, Item, Quantity, compare


def verdict_on(quantity, estimate):
    """Return the verdict on one quantity."""
    item = Item("num:x", "", "", lambda setting: None, {"x": quantity})
    return compare(item, {"x": estimate})[0].verdict


@pytest.mark.parametrize(
    ("published", "decimals", "estimate", "verdict"),
    [
        (0.226, 3, Estimate(75 / 332), "exact"),
        (0.087, 3, Estimate(0.0876), "differs"),
        (0.087, 3, Estimate(0.090, error=0.001), "within error"),
        (0.087, 3, Estimate(0.091, error=0.001), "differs"),
        (0.087, 3, Estimate(0.091, error=0.0005, run_sd=0.002), "within error"),
        (17, 0, Estimate(17), "exact"),
        (17, 0, Estimate(18), "differs"),
        ([57, 58], 0, Estimate([57, 58]), "exact"),
        ([57, 58], 0, Estimate([57]), "differs"),
        (None, 3, Estimate(1.0), "not published"),
    ],
)
def test_verdict(published, decimals, estimate, verdict):
    assert verdict_on(Quantity("x", published, decimals), estimate) == verdict


def test_a_sentence_is_borne_out_or_not():
    quantity = Quantity("x", "more than a week", holds=lambda time: time.value > 7)
    assert verdict_on(quantity, Estimate(8)) == "borne out"
    assert verdict_on(quantity, Estimate(6)) == "not borne out"


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        (Estimate(0.0871), "confirmed"),
        (Estimate(0.0885, error=0.001), "confirmed"),
        (Estimate(0.0885), "not confirmed"),
    ],
)
def test_an_independent_value_is_confirmed_or_not(estimate, verdict):
    assert verdict_on(Quantity("x", 0.087, source="independent"), estimate) == verdict


@given(st.floats(-1e3, 1e3), st.integers(0, 6))
def test_a_rounded_number_is_always_exact(value, decimals):
    assert verdict_on(Quantity("x", round(value, decimals), decimals), Estimate(value)) == "exact"


def test_every_quantity_needs_an_estimate():
    item = Item("num:x", "", "", lambda setting: None, {"x": Quantity("x")})
    with pytest.raises(ValueError, match="'y'.* must be in published.toml and in the result"):
        compare(item, {"x": Estimate(1.0), "y": Estimate(1.0)})


def test_a_difference_is_explained_by_the_reason_given():
    item = Item("num:x", "", "", lambda setting: None, {"x": Quantity("x", 1.0, why="Because.")})
    row = compare(item, {"x": Estimate(2.0)})[0]
    assert (row.verdict, row.explanation) == ("differs", "Because.")


def test_the_sd_of_single_runs_counts_for_published_values_only():
    estimate = Estimate(0.091, error=0.001, run_sd=0.003)
    assert verdict_on(Quantity("x", 0.087), estimate) == "within error"
    assert verdict_on(Quantity("x", 0.087, source="independent"), estimate) == "not confirmed"
