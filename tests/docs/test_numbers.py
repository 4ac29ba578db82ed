"""The numbers of the pages come from docs/measure: none is typed, and none is missing."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bayesknn.paper import REGISTRY
from bayesknn.paper.comparison import KINDS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "index", "install", "start", "model", "engine", "methods", "pool", "intervals", "checks",
    "scaling", "command_line", "faq", "other_packages", "programs",
    "clients",
)  # fmt: skip
# Levels and thresholds, and the made-up example of a probability.
TYPED = {"0.5", "0.6", "0.9", "0.95"}


@pytest.fixture
def measure(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "measure")

    def load(name):
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return load


def prose(page):
    text = (DOCS / f"{page}.md").read_text()
    parts = r"```.*?```|`[^`]*`|\$\$.*?\$\$|\{\{.*?\}\}|\(https:[^)]*\)"
    return re.sub(parts, " ", text, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_no_measured_number_is_typed(page):
    assert set(re.findall(r"(?<![\d.])\d*\.\d+", prose(page))) <= TYPED


@pytest.mark.parametrize("page", PAGES)
def test_what_is_shown_is_measured(page):
    """Each substitution, table and figure of a page is written by a script."""
    scripts = "\n".join(path.read_text() for path in (DOCS / "measure").glob("*.py"))
    text = (DOCS / f"{page}.md").read_text()
    for name in re.findall(r"_generated/([\w.]+)", text):
        assert f'"{name}"' in scripts, name
    for name in re.findall(r"\{\{ *(\w+) *\}\}", text):
        # Names are put together from the data, the likelihood and what is said of it.
        for stem in ("ripley_coherent_", "ripley_pseudo_", "ripley_holmes_adams_"):
            if name.startswith(stem):
                name = name.removeprefix(stem)
        if name.startswith("cover_") and name not in ("cover_sets", "cover_new"):
            assert re.fullmatch(
                r"cover_(coherent|pseudo|holmes_adams)_(250|1000)_(parameters|probability|width)|cover_(some_)?copied_width",
                name,
            )
            continue
        assert f'"{name}"' in scripts, name


def test_the_mixture_knows_its_probabilities(measure):
    mixture = measure("mixtures").RIPLEY
    rng = np.random.default_rng(0)
    X, y = mixture.sample(200_000, rng)
    p = mixture.probabilities(X)[:, 1]
    assert np.allclose(mixture.probabilities(X).sum(axis=1), 1)
    # 5.5 standard errors and more.
    assert abs(np.mean((p > 0.5) != y) - np.minimum(p, 1 - p).mean()) < 0.004
    for low in np.arange(0, 1, 0.1):
        there = (p >= low) & (p < low + 0.1)
        error = np.sqrt(0.25 / there.sum())
        assert abs(y[there].mean() - p[there].mean()) < 6 * error


def test_the_table_of_times_can_be_written(measure, tmp_path):
    measure("scaling").run(tmp_path)
    rows = (tmp_path / "scaling.md").read_text().splitlines()
    assert len(rows) > 4


def test_the_tables_of_the_comparison_can_be_written(measure, tmp_path):
    numbers = measure("prediction").run(tmp_path)
    methods = (tmp_path / "prediction.md").read_text().splitlines()[2:]
    sets = (tmp_path / "prediction_sets.md").read_text().splitlines()[2:]
    assert len(sets) == int(numbers["prediction_sets"]) >= 12
    assert len(methods) >= 9
    # The smallest mean log-loss comes first.
    assert methods[0].startswith("| the pool |")


def test_the_tables_of_coverage_can_be_written(measure, tmp_path):
    script = measure("interval_coverage")
    numbers = script.run(tmp_path)
    rows = (tmp_path / "coverage_fresh.md").read_text().splitlines()
    assert len(rows) == 4 + len(script.FRESH) >= 10
    assert int(numbers["missed_fresh"]) <= int(numbers["missed_fresh_before"])
    assert int(numbers["missed_unseen"]) < int(numbers["missed_unseen_before"])
    assert float(numbers["seen_wider"]) < 0.03


def test_what_is_kept_says_what_it_measures(measure):
    kept = measure("kept")
    names = {path.name for path in kept.HERE.iterdir() if path.suffix in (".json", ".txt")}
    # AutoGluon's numbers are of its release; the sets on which the rule for K was chosen stay.
    assert names == {*kept.CODE, "prediction_autogluon.json", "max_neighbors.json"}
    for path in {path for paths in kept.CODE.values() for path in paths}:
        assert (kept.ROOT / path).is_dir(), path


def test_the_age_of_a_kept_measurement_is_shown(measure):
    """The pages show each age, and the command for releases fails if one is too large."""
    kept, shown = (
        measure("kept"),
        re.compile(r"commit \w{12} of \d{4}-\d\d-\d\d(, \d+ commits to the measured code ago)?"),
    )
    for name in kept.CODE:
        assert shown.fullmatch(kept.describe_age(name))
    pages = "".join(path.read_text() for path in DOCS.glob("*.md"))
    for name in set(kept.CODE) - {"benchmarks.txt"}:
        assert f"{{{{ {Path(name).stem}_measured }}}}" in pages
    assert kept.list_ages(most=-1)
    # Without the history an age is unknown.
    is_known = all(kept.count_younger_commits(name) is not None for name in kept.CODE)
    assert kept.list_ages(most=10**6) != is_known


def test_the_kept_verdicts_are_those_of_the_papers_page(measure):
    """One for each comparison; what is not random has the verdict that it has at any budget."""
    kept = measure("verdicts").read()
    wanted = {
        f"{item.id} {name}": KINDS[quantity.kind][1]
        for item in REGISTRY.values()
        for name, quantity in item.quantities.items()
        if quantity.kind
    }
    assert set(kept) == set(wanted), "python docs/measure verdicts"
    assert all(verdict in wanted[name] for name, verdict in kept.items())


def test_every_picture_kept_in_the_repository_is_used():
    pages = (DOCS.parent / "README.md").read_text() + "".join(
        path.read_text() for path in DOCS.glob("*.md")
    )
    for picture in (DOCS / "images").iterdir():
        assert picture.name in pages, picture.name
