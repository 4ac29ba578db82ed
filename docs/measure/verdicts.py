"""Verdicts of the comparisons with the paper: ``python docs/measure verdicts``, five minutes.

It runs ``bayesknn paper``, whose page is then in ``paper-output``, and writes the verdict of each
comparison to ``verdicts.json``, which is stored in the repository.
"""

import json
from pathlib import Path

from bayesknn.paper import REGISTRY, run_paper
from bayesknn.paper.comparison import KINDS
from kept import HERE, ROOT, describe_age, describe_measurement

FILE = HERE / "verdicts.json"
# Items about the cost and the limits of the paper's perfect sampler, which is replaced here.
REPLACED = ("num:accept-reject", "num:times", "extra:perfect-four")


def write() -> None:
    """Reproduce the paper with the default budget and store the verdicts."""
    about = describe_measurement()
    # force=True recomputes results in the folder, which may come from other code.
    rows = run_paper(ROOT / "paper-output", force=True).rows
    verdicts = {f"{row.id} {row.quantity}": row.verdict for row in rows if row.kind}
    FILE.write_text(json.dumps({"measured": about, "verdicts": verdicts}, indent=1) + "\n")


def read() -> dict[str, str]:
    """Return the verdict of each comparison, by item and quantity."""
    return json.loads(FILE.read_text())["verdicts"]


def count() -> dict[str, dict[str, int]]:
    """Return the number of comparisons with each verdict, for each kind of comparison."""
    verdicts = list(read().values())
    return {
        kind: {verdict: verdicts.count(verdict) for verdict in each}
        for kind, (_, each) in KINDS.items()
    }


def write_case() -> str:
    """Return the sentences with the counts of all verdicts, for the pages and the README."""
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
    """Write the sentences for the pages; return the age of the measurement."""
    (out / "verdicts.md").write_text(write_case() + "\n")
    return {"verdicts_measured": describe_age(FILE.name)}
