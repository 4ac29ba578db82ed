"""Tests of the Displays: the numbers that they compute, and that the figures show them."""
