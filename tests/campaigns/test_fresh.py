"""How ``make fresh`` reads recipes and names what makes a test fail."""

import pytest

from campaigns import fresh


def test_recipes_are_made_of_differences():
    for recipe in fresh.RECIPES:
        assert fresh.read_recipe(recipe)[:2] == ("folder", "user")
    found = fresh.read_recipe("bounds+generic+bounds")
    assert found == ("folder", "user", "bounds", "generic")
    with pytest.raises(SystemExit, match="generick: no such recipe or difference; there are old"):
        fresh.read_recipe("old+generick")


def test_each_failure_is_named_by_its_difference():
    def run(names):
        # One never passes, one fails under b, one under a and under c, one under a with b.
        found = ["always"]
        found += ["b"] * ("b" in names) + ["a or c"] * bool({"a", "c"} & set(names))
        return found + ["together"] * ({"a", "b"} <= set(names))

    names = ("a", "b", "c")
    causes = fresh.name_causes(run(names), names, run)
    assert causes == {"always": ["none"], "b": ["b"], "a or c": ["a", "c"], "together": []}
