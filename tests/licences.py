"""`python -m tests.licences SBOM`: the licences of all that a wheel may bring along.

Reads the list of parts that `make release` writes, and fails where a part has a licence
that would bind users of karat; else writes docs/reference/licences.md.
"""

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "licences.md"
INSTALLERS = {"pip", "setuptools", "wheel"}
# Of metadata that name none: what the licence file in the package is.
BY_FILE = {"resvg_py": "MIT"}
# Weak copyleft (MPL) binds changes of the part itself alone.
FREE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT"),
    *("MPL-2.0", "PSF-2.0", "Unlicense", "Zlib"),
}
HEAD = """# Licences

Written by `make release`. karat (Apache-2.0) with all extras brings these packages.

| package | licence |
|---|---|
"""


def licence(part: dict[str, Any]) -> str:
    """The licence of one part."""
    for entry in part.get("licenses", ()):
        named = entry.get("expression") or entry["license"].get("id")
        if named:
            return str(named)
    return BY_FILE.get(part["name"], "not stated")


def main() -> None:
    """Write the page, or name what is not free."""
    parts = json.loads(Path(sys.argv[1]).read_text("utf-8"))["components"]
    licences = {
        part["name"].lower().replace("_", "-"): licence(part)
        for part in parts
        if part["name"] not in INSTALLERS
    }
    bound = {
        name: text
        for name, text in licences.items()
        if not {*text.split(" AND ")} <= FREE
    }
    if bound:
        sys.exit(f"licences to be looked at: {bound}")
    rows = (f"| {name} | {text} |\n" for name, text in sorted(licences.items()))
    PAGE.write_text(HEAD + "".join(rows), "utf-8")


if __name__ == "__main__":
    main()
