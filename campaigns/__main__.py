"""Run a campaign: ``python -m campaigns fuzz|faults|mutants``; exits 1 if it found something.

With ``--record`` the figures go to ``campaigns/figures.json``, from which CONTRIBUTING has them.
"""

import argparse
import importlib
import json
import sys

from campaigns.figures import record


def main(arguments: list[str]) -> int:
    """Run the campaign that is named."""
    parser = argparse.ArgumentParser(prog="python -m campaigns")
    parser.add_argument("campaign", choices=["fuzz", "faults", "mutants"])
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="how long to go on, but for faults"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="faults: how much of all")
    parser.add_argument("--only", help="mutants: those whose name holds this text")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    given = parser.parse_args(arguments)
    module = importlib.import_module(f"campaigns.{given.campaign}")
    options = {
        "fuzz": {"minutes": given.minutes, "seed": given.seed},
        "faults": {"seed": given.seed, "share": given.share},
        "mutants": {"minutes": given.minutes, "only": given.only},
    }
    figures = module.run(**options[given.campaign])
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if given.record:
        record(given.campaign, figures)
    return 1 if figures.get("faults") or figures.get("survivors") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
