"""A page opened in headless Chromium: what it asks for, what goes wrong, what is seen.

Debian's Chromium is driven through playwright, one for all pages. Where it is missing the test is
skipped, which CI takes for a failure (conftest.py), so that nothing is left untested by accident.
"""

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CHROMIUM = Path("/usr/bin/chromium")
# The last five keep Chromium itself from asking hosts for anything.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Milliseconds: a browser on a loaded machine takes its time.
_PATIENCE = 300_000


@dataclass
class Findings:
    """What a browser made of a page.

    Attributes
    ----------
    requests : list of str
        Addresses the page asked for beside itself and its own data.
    errors : list of str
        Script errors and everything the console called an error.
    figures : list of dict
        Of each figure's picture: ``name``, ``x``, ``width`` and ``height`` in pixels, and
        ``painted``, whether an image has its pixels or a drawing its shapes.
    overflow : int
        Pixels by which the page is wider than the window.
    text : str
        What a reader can read.
    scripts : int
        Script elements in the page.
    outside : list of str
        What ends to the right of the window, other than in a box that scrolls.
    tallest : float
        Height of the tallest cell of a table, in pixels.
    height : float
        Of the page.
    shades : list of dict
        Of each box that scrolls and is too narrow: how much darker its left and right edges are
        than its ground, at the start (``left``, ``right``) and when it was scrolled to its end
        (``left_at_end``, ``right_at_end``).
    """

    requests: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    overflow: int = 0
    text: str = ""
    scripts: int = 0
    outside: list = field(default_factory=list)
    tallest: float = 0.0
    height: float = 0.0
    shades: list = field(default_factory=list)


_UNFOLD = "() => document.querySelectorAll('details.section').forEach(e => { e.open = true })"
_MEASURE = """() => ({
  figures: [...document.querySelectorAll('figure svg, figure img')].map(e => {
    e.scrollIntoView();
    const box = e.getBoundingClientRect();
    const painted = e.tagName === 'IMG' ? e.complete && e.naturalWidth > 0
                                        : e.querySelectorAll('path, image, use').length > 0;
    const visible = getComputedStyle(e).visibility === 'visible';
    return {name: e.getAttribute('aria-label') || e.getAttribute('alt') || '', x: box.x,
            width: box.width, height: box.height, painted: painted && visible};
  }),
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  text: document.body.innerText,
  scripts: document.querySelectorAll('script').length,
  outside: [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, svg') &&
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5).map(e =>
    e.outerHTML.slice(0, 80)),
  tallest: Math.max(0, ...[...document.querySelectorAll('td, th')].map(e =>
    e.getBoundingClientRect().height)),
  height: document.documentElement.scrollHeight,
})"""


def open_page(path, width, *, screenshot=None, dark=False, shades=False, unfold=True):
    """Open a file in Chromium and look at it.

    Parameters
    ----------
    path : path-like
        The HTML file.
    width : int
        Of the window, in pixels.
    screenshot : path-like, optional
        Where to keep a picture of the whole page.
    dark : bool
        Whether the reader prefers dark pages.
    shades : bool
        Whether to look at the edges of boxes that scroll.
    unfold : bool
        Whether to open every folded section first.

    Returns
    -------
    Findings
    """
    if not CHROMIUM.exists():
        pytest.skip(f"no page was opened: {CHROMIUM} is missing (apt-get install chromium)")
    return _in_thread(_look, Path(path).resolve().as_uri(), width, screenshot, dark, shades, unfold)


# Playwright leaves an event loop behind in the thread that starts it, which would disturb others.
_thread = ThreadPoolExecutor(1)
_opened = {}


def _in_thread(function, *args):
    return _thread.submit(function, *args).result()


def _start():
    from playwright.sync_api import sync_playwright

    _opened["playwright"] = sync_playwright().start()
    _opened["chromium"] = _opened["playwright"].chromium.launch(
        executable_path=str(CHROMIUM), headless=True, args=list(FLAGS)
    )


def _stop():
    for name, end in (("chromium", "close"), ("playwright", "stop")):
        if name in _opened:
            getattr(_opened.pop(name), end)()


def close_browser():
    """End the Chromium of all pages, if there is one."""
    _in_thread(_stop)


def _look(address, width, screenshot, dark, shades, unfold):
    """Open a page in a window that knows nothing of others, and look at it."""
    if not ("chromium" in _opened and _opened["chromium"].is_connected()):
        _stop()
        _start()
    found = Findings()
    window = _opened["chromium"].new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
    )
    try:
        page = window.new_page()
        page.set_default_timeout(_PATIENCE)
        page.route("**/*", lambda route: _note_request(found, address, route))
        page.on("console", lambda message: _note_console(found, message))
        page.on("pageerror", lambda error: found.errors.append(str(error)))
        page.on("dialog", lambda dialog: _note_dialog(found, dialog))
        page.goto(address, wait_until="load")
        if unfold:
            page.evaluate(_UNFOLD)
        for name, value in page.evaluate(_MEASURE).items():
            setattr(found, name, value)
        if screenshot is not None:
            page.screenshot(path=str(screenshot), full_page=True)
        if shades:
            found.shades = [
                _look_at_edges(box)
                for box in page.query_selector_all(".scroll")
                if box.is_visible() and box.evaluate("e => e.scrollWidth > e.clientWidth")
            ]
    finally:
        window.close()
    return found


def check_page(path, width, **options):
    """Assert what holds for every page of ours: alone, without errors, every figure in sight."""
    found = open_page(path, width, **options)
    assert found.outside == []
    assert found.requests == []
    assert found.errors == []
    assert found.overflow <= 0, f"the page is {found.overflow} pixels wider than {width}"
    assert found.figures
    for figure in found.figures:
        assert figure["painted"], figure
        assert figure["width"] > 0.5 * min(width, 500) and figure["height"] > 100, figure
        assert figure["x"] >= 0 and figure["x"] + figure["width"] <= width, figure
    return found


def _look_at_edges(box):
    """Take a picture of a box before and after it is scrolled to its end."""
    looks = {}
    for when in ("", "_at_end"):
        picture = np.asarray(Image.open(io.BytesIO(box.screenshot())).convert("L"), dtype=float)
        # The median down a column is that of the ground; text covers less than half of it.
        columns = np.median(picture, axis=0)
        ground = np.median(columns)
        looks["left" + when], looks["right" + when] = ground - columns[[4, -5]]
        box.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    return looks


def _note_request(found, address, route):
    """Let the page have itself and its own data, and nothing else."""
    url = route.request.url
    if url == address or url.startswith("data:"):
        route.continue_()
    else:
        found.requests.append(url)
        route.abort()


def _note_console(found, message):
    if message.type == "error":
        found.errors.append(message.text)


def _note_dialog(found, dialog):
    found.errors.append(f"a dialog opened: {dialog.message}")
    dialog.dismiss()
