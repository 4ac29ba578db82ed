"""Tests of the packaged data sets."""
