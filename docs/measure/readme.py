"""Update of the README's figures and measured passages: ``python docs/measure readme``."""

import textwrap
from pathlib import Path

import matplotlib as mpl

import first_use
import interval_coverage
import prediction
import verdicts
from bayesknn.cli.demo import draw
from bayesknn.datasets import load_ripley
from bayesknn.paper import as_published

IMAGES = Path(__file__).parent.parent / "images"
README = Path(__file__).parents[2] / "README.md"


def write() -> None:
    """Draw the figures of the README and write its measured passages."""
    data = prediction.read()
    prediction.draw(data).savefig(IMAGES / "prediction.png", dpi=130)
    ripley = load_ripley()
    clf = as_published(ripley.y_train, random_state=0).fit(ripley.X_train, ripley.y_train)
    with mpl.rc_context({"font.size": 10}):
        draw(clf, ripley.X_train, ripley.y_train).savefig(IMAGES / "zones.png", dpi=110)
    README.write_text(fill(README.read_text()))


def fill(text: str) -> str:
    """Return the text of the README with all measured passages replaced.

    The passage NAME is between the lines ``<!-- NAME -->`` and ``<!-- end -->``.
    """
    for name, write_passage in PASSAGES.items():
        start, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, *others = text.split(start)
        if len(others) != 1:
            raise ValueError(
                f"README.md must contain {start.strip()} once, got {len(others)} times"
            )
        text = before + start + write_passage() + others[0][others[0].index(end) :]
    return text


def _write_demo() -> str:
    """Return the sentence on the cost of the demo."""
    later, first = (first_use.read()[f"demo_{time}"] for time in ("later", "first"))
    return _wrap(
        f"The demo takes {later:.0f} CPU seconds, and {first:.0f} the first time, when functions "
        "are compiled."
    )


def _write_pool() -> str:
    """Return the list items about the ensemble: log-loss, intervals and cost."""
    seconds = first_use.read()
    first, fits, whole, alone = (
        f"{seconds[name]:.1f}" for name in ("pool_first", "pool_later", "command", "command_alone")
    )
    cost = (
        f"- **Cost of the command.** `bayesknn fit` on {first_use.N_ROWS} rows of the data above "
        f"takes {whole} CPU seconds with the report and a comparison with other classifiers, "
        f"{alone} with `--no-compare`. The first use on a machine compiles functions: a first fit "
        f"of the pool from Python takes {first} CPU seconds, a later one {fits}, imports included."
    )
    return prediction.write_case(prediction.read()) + _wrap(interval_coverage.write_case(), cost)


def _wrap(*parts: str) -> str:
    """Return paragraphs or list items of Markdown, wrapped at 118 characters."""
    return "".join(
        textwrap.fill(part, 118, subsequent_indent="  " * part.startswith("- ")) + "\n"
        for part in parts
    )


PASSAGES = {
    "demo": _write_demo,
    "paper": lambda: _wrap(verdicts.write_case()),
    "pool": _write_pool,
}
