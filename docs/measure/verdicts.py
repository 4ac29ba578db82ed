"""Counts of the paper's page: ``python docs/measure verdicts``, five minutes.

Writes ``verdicts.json``, which is kept in the repository: the verdict of each comparison of
``bayesknn paper``, whose page is then in ``paper-output``.
"""

import json
from pathlib import Path

from bayesknn.paper import REGISTRY, run_paper
from bayesknn.paper.comparison import KINDS
from kept import HERE, ROOT, describe_age, describe_measurement

FILE = HERE / "verdicts.json"
# Items on what the paper's perfect sampling costs and cannot do; another sampler is used here.
REPLACED = ("num:accept-reject", "num:times", "extra:perfect-four")


def write() -> None:
    """Reproduce the paper at the default budget and keep the verdicts."""
    about = describe_measurement()
    # force: results in the folder may come from other code.
    rows = run_paper(ROOT / "paper-output", force=True).rows
    verdicts = {f"{row.id} {row.quantity}": row.verdict for row in rows if row.kind}
    FILE.write_text(json.dumps({"measured": about, "verdicts": verdicts}, indent=1) + "\n")


def read() -> dict[str, str]:
    """Return the verdict of each comparison, by item and quantity."""
    return json.loads(FILE.read_text())["verdicts"]


def count() -> dict[str, dict[str, int]]:
    """Return the number of comparisons with each verdict, by kind."""
    verdicts = list(read().values())
    return {
        kind: {verdict: verdicts.count(verdict) for verdict in each}
        for kind, (_, each) in KINDS.items()
    }


def write_case() -> str:
    """Return the counts of the three kinds as a sentence."""
    counts, verdicts = count(), read().items()
    replaced = sum(
        verdict == "not borne out" and name.startswith(REPLACED) for name, verdict in verdicts
    )
    number, sentence, check = (counts[kind] for kind in KINDS)
    return (
        f"`bayesknn paper` recomputes every figure, table and number, {len(REGISTRY)} items, in "
        f"some minutes. Of {sum(number.values())} published numbers, {number['exact']} are "
        f"reproduced to the last digit, {number['within error']} within Monte Carlo error, and "
        f"{number['differs']} differ. Of {sum(sentence.values())} sentences, "
        f"{sentence['borne out']} are borne out and {sentence['not borne out']} are not, "
        f"{replaced} of these because a sampler here is faster or more general than the paper's. "
        f"Of {sum(check.values())} further checks against values computed independently, which "
        f"were not published, {check['confirmed']} are confirmed. Each difference is shown with "
        "its reason."
    )


def run(out: Path) -> dict[str, str]:
    """Write the sentence for the pages."""
    (out / "verdicts.md").write_text(write_case() + "\n")
    return {"verdicts_measured": describe_age(FILE.name)}
