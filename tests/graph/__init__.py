"""Tests of metrics, search and graphs."""
