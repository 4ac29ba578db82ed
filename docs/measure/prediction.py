"""The pool against others, as ``python docs/measure prediction`` left it in prediction.json."""

import json
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from comparison import FILE

OURS, NEIGHBORS = "the pool", "the pool, neighbours only"
FREQUENCIES = "class frequencies"


def run(out: Path) -> dict[str, str]:
    """Write the two tables, and what the text says of them."""
    found = json.loads(FILE.read_text())
    sets, methods = list(found["losses"]), list(found["seconds"])
    losses = np.array([[np.mean(found["losses"][s][m]) for m in methods] for s in sets])
    ranks = np.array([rankdata(row) for row in losses])
    n_fits = len(sets) * found["n_splits"]
    rows = [
        "| method | mean log-loss | mean rank | best on | CPU s a fit |",
        "|---|---:|---:|---:|---:|",
    ]
    for j in np.argsort(losses.mean(axis=0)):
        rows.append(
            f"| {methods[j]} | {losses[:, j].mean():.3f} | {ranks[:, j].mean():.2f} "
            f"| {np.sum(ranks[:, j] == 1)} | {found['seconds'][methods[j]] / n_fits:.1f} |"
        )
    (out / "prediction.md").write_text("\n".join(rows) + "\n")
    rows = [f"| data | n, p, G | {' | '.join(methods)} |", "|---|---|" + "---:|" * len(methods)]
    for name, row in zip(sets, losses, strict=True):
        best = row.min()
        cells = [f"**{loss:.3f}**" if loss == best else f"{loss:.3f}" for loss in row]
        # Not to be broken over lines.
        sizes = ",\N{NO-BREAK SPACE}".join(map(str, found["sizes"][name]))
        rows.append(f"| {name} | {sizes} | {' | '.join(cells)} |")
    (out / "prediction_sets.md").write_text("\n".join(rows) + "\n")
    others = [j for j, method in enumerate(methods) if method not in (OURS, NEIGHBORS)]
    ours = losses[:, methods.index(OURS)]
    gaps = ours - losses[:, others].min(axis=1)
    worst = int(np.argmax(gaps))
    winner = methods[others[int(np.argmin(losses[worst, others]))]]
    nothing = sets.index("no signal")
    alone = losses[:, methods.index(NEIGHBORS)]
    gains = np.argsort(alone - ours)[::-1]
    excess = ours[nothing] - losses[nothing, methods.index(FREQUENCIES)]
    return {
        "prediction_commit": found["measured"]["commit"][:12],
        "prediction_date": found["measured"]["date"],
        "prediction_sets": str(len(sets)),
        "prediction_wins": str(int(np.sum(gaps < 0))),
        "prediction_worst": f"{sets[worst]} ({winner}, by {gaps[worst]:.3f})",
        "prediction_no_signal": f"{excess:.3f}",
        "prediction_companions": " and ".join(
            f"{sets[j]} ({alone[j]:.3f} to {ours[j]:.3f})" for j in gains[:2]
        ),
        "prediction_neighbors": str(int(np.sum(alone < losses[:, others].min(axis=1)))),
    }
