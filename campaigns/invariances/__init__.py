"""Invariances: results that must be equal for every table, classifier and choice of options.

``cases`` draws cases. ``laws``, ``engine``, ``files``, ``relatives`` and ``nothing`` check the
invariances that ``registry`` lists. ``known`` lists faults that are not fixed yet. ``python -m
campaigns invariances`` draws thousands of cases; the tests run a few.
"""
