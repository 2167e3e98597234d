"""Medians and spread of several runs, the table on the terminal, and `bench.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

Figures = Mapping[str, Any]


def summary(runs: Sequence[Figures]) -> dict[str, Any]:
    """The median of each figure over the runs, and under `spread` (largest - smallest) / median."""
    names = list(dict.fromkeys(name for run in runs for name in run))
    found: dict[str, Any] = {}
    spread: dict[str, float] = {}
    for name in names:
        values = [run[name] for run in runs if name in run]
        middle = median(values)
        found[name] = _rounded(middle)
        if len(values) > 1 and middle:
            spread[name] = round((max(values) - min(values)) / abs(middle), 2)
    if spread:
        found["spread"] = spread
    return found


def _rounded(value: float) -> float:
    if abs(value) >= 100:
        return round(value)
    return round(value, 3 if abs(value) < 10 else 1)


def table(rows: Mapping[str, Mapping[str, Figures]], titles: Mapping[str, str]) -> str:
    """All figures, one line per row and database."""
    lines = []
    for row, dialects in rows.items():
        lines.append(f"{row}  {titles.get(row, '')}")
        for dialect, figures in dialects.items():
            spread = figures.get("spread", {})
            cells = [
                f"{name} {value:g}" + (f" ±{spread[name] / 2:.0%}" if spread.get(name) else "")
                for name, value in figures.items()
                if name != "spread"
            ]
            lines.append(f"    {dialect:8} " + "  ".join(cells))
    return "\n".join(lines)


def write(path: Path, rows: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    """`bench.json`; rows that were not measured this time keep the figures they had."""
    before: dict[str, Any] = {}
    if path.exists():
        before = json.loads(path.read_text()).get("rows", {})
    for row, dialects in rows.items():
        before.setdefault(row, {}).update(dialects)
    path.write_text(json.dumps({"rows": before, "machine": machine}, indent=1, sort_keys=True) + "\n")
