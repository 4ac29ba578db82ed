"""What was published and is not found here: values and reasons as ``bayesknn paper`` has them."""

from pathlib import Path

from bayesknn.paper import REGISTRY


def run(out: Path) -> dict[str, str]:
    """Return the published values and the reasons; ours are measured with the methods."""
    pseudo, path, perfect = (
        REGISTRY[f"num:error-{name}"].quantities["error"] for name in ("pseudo", "path", "perfect")
    )
    (beta_max,) = REGISTRY["num:beta-max"].quantities.values()
    pima = REGISTRY["num:error-pima"].quantities["error"]
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
