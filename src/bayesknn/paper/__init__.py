"""The paper by one command: every figure, table and number, beside what was published.

``published.toml`` holds what was published; each family of experiments has a file, ``samples`` has
what they share, ``comparison`` the verdicts; ``run`` computes what is not there yet and writes the
page.
"""

from bayesknn.paper.run import REGISTRY, find_items, run_paper
from bayesknn.paper.setting import as_published

__all__ = ["REGISTRY", "as_published", "find_items", "run_paper"]
