"""The README's pictures and measured lines: ``python docs/measure readme`` renews them."""

import re
import textwrap
from pathlib import Path

import matplotlib as mpl

import interval_coverage
import prediction
from bayesknn.cli.demo import draw
from bayesknn.datasets import load_ripley
from bayesknn.paper import as_published

IMAGES = Path(__file__).parent.parent / "images"
README = Path(__file__).parents[2] / "README.md"


def write() -> None:
    """Draw zones and posterior on Ripley's data, and the comparison with other methods."""
    data = prediction.read()
    prediction.draw(data).savefig(IMAGES / "prediction.png", dpi=130)
    ripley = load_ripley()
    clf = as_published(ripley.y_train, random_state=0).fit(ripley.X_train, ripley.y_train)
    with mpl.rc_context({"font.size": 10}):
        draw(clf, ripley.X_train, ripley.y_train).savefig(IMAGES / "zones.png", dpi=110)
    README.write_text(fill(README.read_text()))


def fill(text: str) -> str:
    """Return the README with every measured passage written anew.

    A passage named NAME stands between the lines ``<!-- NAME -->`` and ``<!-- end -->``.
    """
    for name, write_passage in PASSAGES.items():
        passage = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        text, count = passage.subn(lambda _, write=write_passage: write(), text)
        if count != 1:
            raise ValueError(f"README.md must have one passage <!-- {name} -->, and has {count}")
    return text


def _write_pool() -> str:
    """Return the items on the pool: its log-loss, its intervals and its cost."""
    return prediction.write_case(prediction.read()) + _wrap(interval_coverage.write_case())


def _wrap(*items: str) -> str:
    """Return items of Markdown, wrapped."""
    return "".join(textwrap.fill(item, 118, subsequent_indent="  ") + "\n" for item in items)


PASSAGES = {"pool": _write_pool}
