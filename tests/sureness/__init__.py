"""Tests of calibration, intervals and counts."""
