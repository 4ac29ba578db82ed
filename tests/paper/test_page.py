"""Tests of the page: it makes no requests and shows every item and verdict."""

import re

import pytest

from bayesknn.paper.comparison import KINDS
from tests.browser import check_page


def test_the_page_makes_no_requests(tiny_run):
    text = tiny_run.page.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", text)
    assert "<script" not in text and "@import" not in text and "url(" not in text


def test_every_item_and_verdict_is_on_the_page(tiny_run):
    text = tiny_run.page.read_text()
    for outcome in tiny_run.outcomes:
        assert f'id="{outcome.item.slug}"' in text
    # Besides a row for each comparison there is a header for each item, and the table of counts.
    assert text.count("<tr>") == len(tiny_run.rows) + len(tiny_run.outcomes) + len(KINDS)
    assert text.count("<figure>") == sum(len(outcome.figures) for outcome in tiny_run.outcomes)


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_in_a_browser(tiny_run, width):
    page = check_page(tiny_run.page, width)
    assert len(page.figures) == sum(len(outcome.figures) for outcome in tiny_run.outcomes)
    assert page.scripts == 0
    assert "not tuned away" in page.text
