"""The page stands alone: nothing is asked for, everything is seen."""

import re

import pytest

from bayesknn.paper.comparison import KINDS
from tests.browser import check_page


def test_the_page_asks_for_nothing(tiny_run):
    text = tiny_run.page.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", text)
    assert "<script" not in text and "@import" not in text and "url(" not in text


def test_every_item_and_verdict_is_on_the_page(tiny_run):
    text = tiny_run.page.read_text()
    for outcome in tiny_run.outcomes:
        assert f'id="{outcome.item.slug}"' in text
    # A head for each table, and the table of counts.
    assert text.count("<tr>") == len(tiny_run.rows) + len(tiny_run.outcomes) + len(KINDS)
    assert text.count("<figure>") == sum(len(outcome.figures) for outcome in tiny_run.outcomes)


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_in_a_browser(tiny_run, width):
    found = check_page(tiny_run.page, width)
    assert len(found.figures) == sum(len(outcome.figures) for outcome in tiny_run.outcomes)
    assert found.scripts == 0
    assert "not tuned away" in found.text
