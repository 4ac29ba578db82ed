"""Compare a tag with what the package, CHANGELOG and CITATION call the version.

python .ci/check_version.py v0.2.0
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def read_versions() -> dict[str, str]:
    """Return the version by the file that names it."""
    patterns = {
        "src/bayesknn/_version.py": r'__version__ = "([^"]+)"',
        "CHANGELOG.md": r"^## \[([^\]]+)\]",
        "CITATION.cff": r"^version: (\S+)",
    }
    versions = {}
    for name, pattern in patterns.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        versions[name] = match[1] if match else "none"
    return versions


if __name__ == "__main__":
    versions = read_versions() | {"the tag": sys.argv[1].removeprefix("v")}
    print(", ".join(f"{name}: {version}" for name, version in versions.items()))
    sys.exit(0 if len(set(versions.values())) == 1 else "the versions differ")
