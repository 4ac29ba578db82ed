"""The page stands alone: nothing is asked for, everything is seen."""

import re

import pytest

from tests.browser import check_page


def test_the_page_asks_for_nothing(tiny_run):
    text = tiny_run.page.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", text)
    assert "<script" not in text and "@import" not in text and "url(" not in text


def test_every_item_and_verdict_is_on_the_page(tiny_run):
    text = tiny_run.page.read_text()
    for outcome in tiny_run.outcomes:
        assert f'id="{outcome.item.slug}"' in text
    assert text.count("<tr>") == len(tiny_run.rows) + len(tiny_run.outcomes)
    assert text.count("<figure>") == sum(len(outcome.figures) for outcome in tiny_run.outcomes)


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_in_a_browser(tiny_run, width):
    found = check_page(tiny_run.page, width)
    assert len(found.figures) == sum(len(outcome.figures) for outcome in tiny_run.outcomes)
    assert found.scripts == 0
    assert "not tuned away" in found.text
