"""Tests of the likelihoods of (beta, k)."""
