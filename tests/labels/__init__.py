"""Tests of ``bayesknn.labels``."""
