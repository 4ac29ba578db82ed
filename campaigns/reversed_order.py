"""A plugin of pytest, for ``make fresh``: the last test first."""


def pytest_collection_modifyitems(items):
    """Turn the order of the tests around."""
    items.reverse()
