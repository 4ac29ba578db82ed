"""Run a campaign: ``python -m campaigns faults|mutants``; exits 1 if it found something."""

import argparse
import importlib
import json
import sys


def main(arguments: list[str]) -> int:
    """Run the campaign that is named."""
    parser = argparse.ArgumentParser(prog="python -m campaigns")
    parser.add_argument("campaign", choices=["faults", "mutants"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="faults: how much of all")
    parser.add_argument("--only", help="mutants: those whose name holds this text")
    given = parser.parse_args(arguments)
    module = importlib.import_module(f"campaigns.{given.campaign}")
    options = {
        "faults": {"seed": given.seed, "share": given.share},
        "mutants": {"only": given.only},
    }
    result = module.run(**options[given.campaign])
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return 1 if result.get("faults") or result.get("survivors") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
