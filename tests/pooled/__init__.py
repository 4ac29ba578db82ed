"""Tests of the pooled neighbours classifier."""
