"""Plugin of pytest for ``make fresh`` that runs the tests in reverse order."""


def pytest_collection_modifyitems(items):
    """Reverse the order of the tests."""
    items.reverse()
