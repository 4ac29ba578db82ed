"""Command line of the campaigns: ``python -m campaigns faults|mutants|invariances``."""

import argparse
import importlib
import json
import sys

_MODULES = {
    "faults": "campaigns.faults",
    "mutants": "campaigns.mutants",
    "invariances": "campaigns.invariances.run",
}


def main(arguments: list[str]) -> int:
    """Run a campaign and print its result; return 1 if it has faults or survivors, else 0."""
    parser = argparse.ArgumentParser(prog="python -m campaigns")
    parser.add_argument("campaign", choices=list(_MODULES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fraction", type=float, default=1.0, help="faults: part of the attempts")
    parser.add_argument("--only", help="mutants, invariances: names that contain this text")
    parser.add_argument("--cases", type=int, default=2000, help="invariances: number of cases")
    given = parser.parse_args(arguments)
    module = importlib.import_module(_MODULES[given.campaign])
    options = {
        "faults": {"seed": given.seed, "fraction": given.fraction},
        "mutants": {"only": given.only},
        "invariances": {"n_cases": given.cases, "seed": given.seed, "only": given.only or ""},
    }
    result = module.run(**options[given.campaign])
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return 1 if result.get("faults") or result.get("survivors") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
