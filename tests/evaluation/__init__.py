"""Scores, folds, comparison and explanation, apart from tables and pages."""
