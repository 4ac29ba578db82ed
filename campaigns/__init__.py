"""Campaigns against the package: ``python -m campaigns fuzz|faults|mutants``, see CONTRIBUTING."""
