"""Tests of bayesknn."""
