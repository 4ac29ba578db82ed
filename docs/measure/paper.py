"""Published values that are not reproduced, with the explanations of ``bayesknn paper``."""

from pathlib import Path

from bayesknn.datasets import load_ripley
from bayesknn.paper import REGISTRY
from bayesknn.paper.samples import error_at
from bayesknn.paper.setting import Study


def run(out: Path) -> dict[str, str]:
    """Return the published values and the explanations; ``methods`` measures our values."""
    pseudo, path, perfect = (
        REGISTRY[f"num:error-{name}"].quantities["error"] for name in ("pseudo", "path", "perfect")
    )
    (beta_max,) = REGISTRY["num:beta-max"].quantities.values()
    pima = REGISTRY["num:error-pima"].quantities["error"]
    (out / "error_by_k.md").write_text(_tabulate_errors())
    return {
        "published_error_pseudo": f"{pseudo.published:.3f}",
        "published_error_path": f"{path.published:.3f}",
        "published_error_perfect": f"{perfect.published:.3f}",
        "published_error_pima": f"{pima.published:.3f}",
        "published_beta_max": f"{beta_max.published:g}",
        "why_error_pseudo": pseudo.why,
        "why_error_path": path.why,
        "why_error_perfect": perfect.why,
        "why_error_pima": pima.why,
        "why_beta_max": beta_max.why,
    }


def _tabulate_errors() -> str:
    """Return a table of the test error rate of the coherent rule at several k on Ripley's data."""
    ripley = Study(load_ripley())
    names = REGISTRY["num:error-by-k"].quantities
    ks = [name.removeprefix("k=") for name in names if name.startswith("k=")]
    errors = [f"{error_at(ripley, int(k)):.3f}" for k in ks]
    rows = (["k", *ks], ["---", *["---:"] * len(ks)], ["test error", *errors])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
