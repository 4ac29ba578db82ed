"""The benchmarks can be imported, and a target is a ratio to something that is named."""

import ast
import importlib
from pathlib import Path

import pytest
from benchmarks.harness import Report

FILES = sorted((Path(__file__).parents[2] / "benchmarks").glob("bench_*.py"))
BOUNDS = {"at_most", "at_least"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_measures(path):
    assert callable(importlib.import_module(f"benchmarks.{path.stem}").run)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_bound_is_in_seconds_or_bytes(path):
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "line":
            names = {keyword.arg for keyword in call.keywords}
            if names & BOUNDS:
                where = f"{path.name}:{call.lineno}"
                assert len(call.args) == 2 and "unit" not in names, where
                assert "against" in names, where


@pytest.mark.parametrize(("unit", "against"), [("s", "another"), ("x", "")])
def test_a_bound_that_is_no_ratio_is_refused(unit, against):
    with pytest.raises(ValueError, match="a target needs the unit"):
        Report().line("a fit", 1.0, unit, at_most=2.0, against=against)
