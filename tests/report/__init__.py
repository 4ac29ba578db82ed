"""Tests of reading, fitting and reporting tables."""
