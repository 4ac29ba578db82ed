"""The report in a browser: alone, without errors, in sight at both widths, nothing unescaped."""

import re

import numpy as np
import pytest

from bayesknn.report import analyse
from bayesknn.report.figures import class_colours
from bayesknn.report.page import render_report
from tests.browser import check_page, open_page
from tests.report.tables import QUICK, SCRIPT, mixed_table, two_columns

COMMAND = "bayesknn fit 'a <i>b</i>.csv' --target kind"


def render(analysis):
    files = {"a <i>b</i>.csv": "0" * 64}
    return render_report(analysis, source="a <i>b</i>.csv", command=COMMAND, files=files)


@pytest.fixture(scope="module")
def hostile():
    """Classes, columns, categories and files all named by somebody who means harm."""
    table = mixed_table().assign(town=lambda frame: "<img src=x onerror=alert(1)>" + frame["town"])
    table["unit"] = SCRIPT
    analysis = analyse(table, "kind", settings={**QUICK, "class_prior": None})
    analysis.warnings.append(f"of {SCRIPT}")
    return analysis


@pytest.fixture(scope="module")
def page(hostile):
    return render(hostile)


@pytest.mark.parametrize("width", [400, 1400])
def test_the_report_in_a_browser(page, tmp_path, width):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    found = check_page(path, width)
    if found is not None:
        assert len(found.figures) == 4
        assert found.scripts == 0
        # Names are read as they were written.
        for text in (SCRIPT, "<b>width</b>", "$\\frac{a", "a <i>b</i>.csv", "<img src=x onerror"):
            assert text in found.text


def test_nothing_of_the_data_becomes_markup(page):
    body = page[page.index("<body>") :]
    for tag in ("<script", "<b>", "<i>b", "<img"):
        assert tag not in body
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)


def test_the_same_analysis_gives_the_same_bytes(hostile, page):
    assert render(hostile) == page
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_it_says_what_was_done(page):
    assert "Of &lt;script&gt;alert(1)&lt;/script&gt;." in page  # the warning, as a sentence
    assert "Before you rely on this" in page
    assert "it has the same value in every row" in page
    assert "The product of each row&#39;s probability given all others" in page
    assert "bayesknn fit &#39;a &lt;i&gt;b&lt;/i&gt;.csv&#39; --target kind" in page


def test_two_columns_show_the_plane(tmp_path):
    table = two_columns()
    analysis = analyse(table, "y", table, axes=("z", "x"), settings=QUICK)
    text = render(analysis)
    assert "Training rows over z and x." in text
    assert "<image" in text  # the tinted plane
    assert "Rows of the test table" in text
    assert "Nothing was found that speaks against the computation." in text


@pytest.mark.parametrize("columns", [["x"], ["town"]])
def test_one_column_is_enough(columns):
    table = two_columns().assign(town=lambda frame: np.where(frame["z"] > 1, "up", "down"))
    table["town"] = table["town"].astype("str")
    assert "<figure>" in render(analyse(table[[*columns, "y"]], "y", settings=QUICK))


def test_many_rows_and_many_classes_stay_small():
    rng = np.random.default_rng(0)
    table = two_columns(3000).assign(y=np.arange(3000) % 30)
    table["third"] = rng.normal(size=3000) + table["y"]
    text = render(analyse(table, "y", settings={**QUICK, "max_neighbors": 4}))
    assert len(text) < 1_500_000
    assert "2,000 of 3,000 rows are drawn" in text
    assert "Who is taken for whom" not in text


def test_every_class_has_a_colour_of_its_own():
    assert len(set(class_colours(60))) == 60
    assert "#000000" not in class_colours(60)


def test_a_page_that_misbehaves_is_caught(tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        "<figure><svg role='img' width='900' height='9'></svg></figure>"
        "<script>console.error('oh'); fetch('https://example.invalid/'); nope()</script>"
    )
    found = open_page(path, 400)
    if found is not None:
        assert any("example.invalid" in url for url in found.requests)
        assert any("oh" in text for text in found.errors)
        assert any("nope" in text for text in found.errors)
        assert found.overflow > 400
        assert not found.figures[0]["painted"]
        with pytest.raises(AssertionError):
            check_page(path, 400)


def test_without_chromium_the_tests_say_so(monkeypatch, tmp_path):
    monkeypatch.setattr("tests.browser.CHROMIUM", tmp_path / "none")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no page was opened"):
        open_page(tmp_path, 400)
    monkeypatch.delenv("CI")
    with pytest.warns(UserWarning, match="no page was opened: .*apt-get install chromium"):
        assert open_page(tmp_path, 400) is None
