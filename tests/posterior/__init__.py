"""Tests of ``bayesknn.posterior``."""
