"""Tests of the recipes of ``make fresh`` and of its search for causes of failures."""

import pytest

from campaigns import fresh


def test_recipes_are_made_of_differences():
    for recipe in fresh.RECIPES:
        assert fresh.read_recipe(recipe)[:2] == ("folder", "user")
    names = fresh.read_recipe("bounds+generic+bounds")
    assert names == ("folder", "user", "bounds", "generic")
    with pytest.raises(SystemExit, match="generick: no such recipe or difference; recipes are old"):
        fresh.read_recipe("old+generick")


def test_each_failure_is_named_by_its_difference():
    def run(names):
        # The names of the tests say under which differences they fail.
        failures = ["always"]
        failures += ["b"] * ("b" in names) + ["a or c"] * bool({"a", "c"} & set(names))
        return failures + ["together"] * ({"a", "b"} <= set(names))

    names = ("a", "b", "c")
    causes = fresh.name_causes(run(names), names, run)
    assert causes == {"always": ["none"], "b": ["b"], "a or c": ["a", "c"], "together": []}
