"""Judge branch coverage part by part: an average over everything hides a bare corner.

Reads the data that `make test` has gathered and prints one line for each part below. The exit code is 1
when a part with code in it covers less than the floor.

    python tools/coverage_floor.py [--report-only]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FLOOR = 95.0
PARTS = (
    "orbit_sdk/definition",
    "orbit_sdk/check",
    "orbit_sdk/engine",
    "orbit_server/storage",
    "orbit_server/pulse",
    "orbit_server/weave",
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of one part was run: lines and branch exits together, and branch exits alone."""

    part: str
    lines: int
    covered_lines: int
    branches: int
    covered_branches: int

    @property
    def of_branches(self) -> float:
        """Percentage of branch exits taken; 100 when there is none."""
        return 100.0 * self.covered_branches / self.branches if self.branches else 100.0

    @property
    def of_lines(self) -> float:
        """Percentage of lines run; 100 when there is none."""
        return 100.0 * self.covered_lines / self.lines if self.lines else 100.0

    @property
    def is_enough(self) -> bool:
        """Both figures must reach the floor: code without branches must be run, too."""
        return self.of_branches >= FLOOR and self.of_lines >= FLOOR


def measured() -> list[Coverage]:
    """The figures of all parts from the coverage data in the project's folder."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(target)]
        subprocess.run(command, check=True, cwd=ROOT)
        files = json.loads(target.read_text())["files"]
    return [
        _sum(part, [each["summary"] for path, each in files.items() if path.startswith(f"{part}/")])
        for part in PARTS
    ]


def _sum(part: str, summaries: list[dict[str, int]]) -> Coverage:
    return Coverage(
        part=part,
        lines=sum(each["num_statements"] for each in summaries),
        covered_lines=sum(each["covered_lines"] for each in summaries),
        branches=sum(each.get("num_branches", 0) for each in summaries),
        covered_branches=sum(each.get("covered_branches", 0) for each in summaries),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge branch coverage part by part.")
    parser.add_argument("--report-only", action="store_true", help="print the figures, never fail")
    options = parser.parse_args()
    figures = measured()
    print(f"{'part':<24}{'branches':>10}{'lines':>10}   (floor {FLOOR:.0f} %)")
    for each in figures:
        mark = "" if each.is_enough else "  below the floor"
        print(f"{each.part:<24}{each.of_branches:>9.1f}%{each.of_lines:>9.1f}%{mark}")
    return 0 if options.report_only or all(each.is_enough for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
