"""Write every generated file of the repository, or check that all are current.

Each `tools/generate_<what>.py` has one function, `outputs() -> dict[str, str]`: paths from the root of
the repository to the whole text of each file. It reads the sources and writes nothing; this module is
the only one that writes.

    python tools/generate.py            write what is out of date
    python tools/generate.py --check    write nothing; exit code 1 when a file is out of date
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHOWN_LINES = 40

# As a script, this file sees only its own folder; generators are modules of `tools`.
sys.path.insert(0, str(ROOT))


def outputs() -> dict[str, str]:
    """The text of every generated file, by path from the root."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tools").glob("generate_*.py")):
        part: dict[str, str] = importlib.import_module(f"tools.{path.stem}").outputs()
        if twice := part.keys() & found.keys():
            raise RuntimeError(f"{path.name} writes {sorted(twice)}, which another generator writes too")
        found.update(part)
    return found


def outdated() -> dict[str, str]:
    """The generated files that differ from what they should be (or are missing), with their right text."""
    return {name: text for name, text in outputs().items() if _current(name) != text}


def _current(name: str) -> str | None:
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.exists() else None


def _difference(name: str, text: str) -> str:
    before = (_current(name) or "").splitlines(keepends=True)
    lines = difflib.unified_diff(before, text.splitlines(keepends=True), name, f"{name} (generated)")
    return "".join(islice(lines, SHOWN_LINES))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write every generated file, or check that all are current.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    options = parser.parse_args()
    stale = outdated()
    for name, text in sorted(stale.items()):
        if options.check:
            print(f"{name} is out of date: run `make generate`\n{_difference(name, text)}", file=sys.stderr)
        else:
            path = ROOT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{name} written")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
