"""The report in a browser: alone, without errors, in sight at both widths, nothing unescaped."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from bayesknn.plots.style import INK
from bayesknn.report import analyse
from bayesknn.report.page import render_report
from bayesknn.tables.remarks import on_table
from tests.browser import check_page, open_page
from tests.report.tables import QUICK, QUICK_OPTIONS, SCRIPT, mixed_table, run, two_columns, used

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
    analysis.remarks.append(on_table("fit", f"of {SCRIPT}", "warning"))
    return analysis


@pytest.fixture(scope="module")
def page(hostile):
    return render(hostile)


@pytest.mark.parametrize("width", [400, 1400])
def test_the_report_in_a_browser(page, tmp_path, width):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    found = check_page(path, width)
    # Calibration, posterior of k and beta, three effects.
    assert len(found.figures) == 6
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


def test_the_ink_of_figures_is_that_of_the_page(page):
    """A rule of the page names it: figures stand in the page as matplotlib wrote them."""
    for what in ("stroke", "fill"):
        assert f'[style*="{what}: {INK}"] {{ {what}: currentColor !important; }}' in page
        assert f"{what}: {INK}" in page[page.index("<svg") :]
    assert "<metadata>" not in page


def test_it_says_what_was_done(page):
    assert "Of &lt;script&gt;alert(1)&lt;/script&gt;." in page  # the warning, as a sentence
    assert "What to beware of" in page
    assert "it has the same value in every row" in page
    assert "The product of each row&#39;s probability given all others" in page
    command = page[page.index("<pre>") :]
    assert "bayesknn fit &#39;a &lt;i&gt;b&lt;/i&gt;.csv&#39; " in command
    assert '<span class="nowrap">--target</span> kind' in command


def test_a_test_table_is_what_is_judged():
    table = two_columns()
    text = render(analyse(table, "y", table[::-1], settings=QUICK))
    assert f"The {len(table)} test rows, grouped by the probability" in text
    assert "No problems were detected." in text


def test_numbers_too_large_to_be_added_are_told_without_a_warning():
    table = two_columns().assign(large=-1e308)
    assert "-1e+308" in render(analyse(table, "y", settings=QUICK))


@pytest.mark.parametrize("columns", [["x"], ["town"]])
def test_one_column_is_enough(columns):
    table = two_columns().assign(town=lambda frame: np.where(frame["z"] > 1, "up", "down"))
    table["town"] = table["town"].astype("str")
    assert "<figure>" in render(analyse(table[[*columns, "y"]], "y", settings=QUICK))


def test_many_rows_and_many_classes_stay_small():
    rng = np.random.default_rng(0)
    table = two_columns(2100).assign(y=np.arange(2100) % 30)
    table["third"] = rng.normal(size=2100) + table["y"]
    text = render(analyse(table, "y", settings={**QUICK, "max_neighbors": 4}))
    assert len(text) < 1_500_000
    assert "The 12 most frequent confusions" in text


@pytest.fixture(scope="module")
def crowded():
    """200 classes and 300 columns, all with names of 400 letters."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(200), 2)
    words = ["long", "name", "x" * 60, "of", "a", "column"]
    names = [" ".join([words[(i + j) % 6] for j in range(80)])[:396] + f"{i:4}" for i in range(300)]
    table = pd.DataFrame(rng.normal(size=(len(y), 300)), columns=names)
    table.iloc[:, :3] += rng.normal(size=(200, 3))[y] * 4
    # Two that are told apart by nothing but their middle.
    classes = np.array([f"{g:03}" + "y" * 397 for g in range(200)], dtype=object)
    classes[:2] = "y" * 200 + "a" + "y" * 199, "y" * 200 + "b" + "y" * 199
    target = "class " * 66
    analysis = analyse(table.assign(**{target: classes[y]}), target, settings=QUICK)
    return analysis, render(analysis)


@pytest.mark.parametrize("width", [400, 1400])
def test_many_classes_many_columns_and_long_names_stay_readable(crowded, tmp_path, width):
    path = tmp_path / "report.html"
    analysis, text = crowded
    path.write_text(text, encoding="utf-8")
    found = check_page(path, width)
    assert found.tallest < 190  # six influential rows, or a name in a few lines, not forty
    assert found.height < 16_000
    assert "The other 188 classes" in found.text
    assert "The other 270 columns" in found.text
    assert "yyy (199)</summary>" in text and "yyy (200)</summary>" in text
    # Whole, for whoever unfolds it.
    for name in [*analysis.training.names, *used(analysis.preparer)]:
        assert name in text


@pytest.mark.parametrize("dark", [False, True])
def test_a_table_that_is_too_wide_shows_on_which_side_it_goes_on(page, tmp_path, dark):
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    found = open_page(path, 400, shades=True, dark=dark)
    assert len(found.shades) >= 3
    sign = -1 if dark else 1  # the shade is lighter than a dark page
    for edges in found.shades:
        assert sign * edges["right"] > 15 and sign * edges["left_at_end"] > 15, edges
        assert abs(edges["left"]) < 5 and abs(edges["right_at_end"]) < 5, edges
    if not dark:
        assert open_page(path, 1400, shades=True).shades == []


def test_every_section_is_folded_and_says_what_to_do_with_it(page, pooled_page):
    for text in (page, pooled_page):
        # Commands that are to be copied keep their options whole, too.
        assert '<span class="nowrap">--out</span>' in text[text.index("<pre>") :]
        text = re.sub(r'<span class="nowrap">(--[\w-]+)</span>', r"\1", text)
        found = re.findall(
            r'<details class="section"><summary><h2>([^<]*)</h2></summary>\s*'
            r'<section id="(\w+)">\s*<p class="advice">([^<]*)</p>',
            text,
        )
        assert len(found) == text.count("<section") == text.count('class="advice"') >= 8
        assert set(re.findall(r'<a href="#(\w+)"', text[: text.index("<h2>Details")])) <= {
            name for _, name, _ in found
        }
        # In the order of use: what is of the method itself comes last.
        assert found[0][1] == "uncertain" and found[-1][1] == "influence"
        for _, _, advice in found:
            assert advice.endswith(".") and ". " not in advice, advice


def test_the_first_page_is_what_a_manager_asks(page, pooled_page, tmp_path):
    """What was predicted from what, how good, what to beware of, what to do next."""
    for text in (page, pooled_page):
        first = text[: text.index("<h2>Details")]
        titles = re.findall("<h2>([^<]*)</h2>", first)
        wanted = ["How good are the predictions?", "What to beware of", "What to do next"]
        assert titles == wanted
        assert re.search(r"rows predicted wrong.*?\d\xa0% \([\d.]+\xa0to\xa0[\d.]+\)", first)
        assert first.count("<figure") == 1
    path = tmp_path / "report.html"
    path.write_text(pooled_page, encoding="utf-8")
    found = open_page(path, 1200, unfold=False)
    assert found.height < 2600
    assert "AUC" in found.text and "Brier" not in found.text


def test_the_report_and_the_terminal_say_the_same_share_is_decided(tmp_path):
    table = two_columns(90)
    paths = tmp_path / "train.csv", tmp_path / "test.csv"
    for path, rows in zip(paths, (table[:60], table[60:]), strict=True):
        rows.to_csv(path, index=False)
    out = tmp_path / "out"
    result = run("fit", paths[0], "--target", "y", "--test", paths[1], "--out", out, *QUICK_OPTIONS)
    (told,) = [line for line in result.stdout.splitlines() if "are decided" in line]
    assert told in (out / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pooled_page():
    """99 to 1, by the pool."""
    table = two_columns(300).assign(third=np.random.default_rng(1).normal(size=300))
    table["y"] = np.where(np.arange(300) % 100, "ordinary", "fraud")
    table.loc[table["y"] == "fraud", ["x", "z"]] += 2.0
    settings = {"random_state": 0, "max_neighbors": 4}
    settings["members"] = ("discriminant", "relevance", "additive", "boosted")
    return render(analyse(table, "y", model="pooled", settings=settings))


def test_a_rare_class_comes_first_and_the_majority_stands_beside_the_error(pooled_page, page):
    assert re.search(
        r"The error hardly depends on rare classes; "
        r"recall: \d of 3 rows of fraud found when left out",
        pooled_page,
    )
    assert "rare classes" not in page[: page.index("Details")]
    assert "66.7\xa0%" in page


class _Headers(HTMLParser):
    """Scope and text of every header cell, and the number of tables."""

    def __init__(self):
        super().__init__()
        self.cells, self.n_tables, self.inside = [], 0, False

    def handle_starttag(self, tag, attributes):
        self.n_tables += tag == "table"
        self.inside |= tag == "th"
        if tag == "th":
            self.cells.append([dict(attributes).get("scope"), ""])

    def handle_data(self, data):
        if self.inside:
            self.cells[-1][1] += data

    def handle_endtag(self, tag):
        self.inside &= tag != "th"


@pytest.mark.parametrize("which", ["page", "pooled_page", "crowded"])
def test_every_header_cell_has_a_scope_and_text(request, which):
    text = request.getfixturevalue(which)
    parser = _Headers()
    parser.feed(text if isinstance(text, str) else text[1])
    assert parser.n_tables > 5 and len(parser.cells) > 3 * parser.n_tables
    for scope, words in parser.cells:
        assert scope in ("col", "row") and words.strip(), (scope, words)


def test_names_in_chinese(tmp_path):
    table = two_columns().rename(columns={"x": "花瓣长度" * 20, "z": "宽度 🌸", "y": "类别"})
    table["类别"] = np.where(table["类别"] == 1, "山鸢尾", "🐝蜜蜂")
    path = tmp_path / "report.html"
    # That matplotlib has no font for the names would be a warning, and an error here.
    path.write_text(render(analyse(table, "类别", settings=QUICK)), encoding="utf-8")
    found = check_page(path, 400)
    assert {"山鸢尾", "🐝蜜蜂", "宽度 🌸"} <= set(re.split(r"[\n\t]|\xa0", found.text))
    label = re.search(r"<text[^>]*>(花瓣长度[^<]*)</text>", path.read_text(encoding="utf-8"))[1]
    assert 40 < 2 * len(label) <= 48  # each takes the room of two letters


def test_every_class_has_a_colour_of_its_own(crowded):
    analysis, text = crowded
    section = re.search(r'<section id="confusion">.*?</section>', text, re.DOTALL)[0]
    colours = set(re.findall(r'class="mark" style="color:(#\w{6})"', section))
    assert len(colours) == len(analysis.training.names) == 200
    assert "#000000" not in colours


@pytest.mark.mutant
def test_a_page_that_misbehaves_is_caught(tmp_path):
    path = tmp_path / "bad.html"
    path.write_text(
        "<figure><svg role='img' width='900' height='9'></svg></figure>"
        "<p style='width: 900px'>wide</p><div class='scroll'><p style='width: 900px'>wide</p></div>"
        "<script>console.error('oh'); fetch('https://example.invalid/'); nope()</script>"
    )
    found = open_page(path, 400)
    assert any("example.invalid" in url for url in found.requests)
    assert any("oh" in text for text in found.errors)
    assert any("nope" in text for text in found.errors)
    assert found.overflow > 400
    assert not found.figures[0]["painted"]
    assert "<figure>" not in found.outside[0] and ">wide<" in found.outside[-1]
    with pytest.raises(AssertionError):
        check_page(path, 400)


def test_without_chromium_the_tests_are_skipped(monkeypatch, tmp_path):
    monkeypatch.setattr("tests.browser.CHROMIUM", tmp_path / "none")
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        open_page(tmp_path, 400)
