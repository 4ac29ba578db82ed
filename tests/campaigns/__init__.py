"""Tests that run a small part of each campaign."""
