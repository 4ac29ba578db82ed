"""Tests of the Bayesian classifier."""
