"""Reproduction of every figure, table and number of the paper, compared with the published values.

``published.toml`` holds the published values. Each family of experiments has its own module;
``samples`` has the chains and posteriors that several of them use. ``comparison`` compares results
with published values. ``run`` computes the items that are missing in a folder and writes the page.
"""

from bayesknn.paper.run import REGISTRY, find_items, run_paper
from bayesknn.paper.setting import as_published

__all__ = ["REGISTRY", "as_published", "find_items", "run_paper"]
