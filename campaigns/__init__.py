"""Test campaigns that take too long for every run of the tests; CONTRIBUTING describes them."""
