"""Tests of log Z and its table."""
