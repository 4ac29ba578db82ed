"""Tests of ``bayesknn.paper``."""
