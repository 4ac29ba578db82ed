"""Tests of the predictive law."""
