"""Benchmarks with speed targets, each a ratio to a reference measured in the same run."""
