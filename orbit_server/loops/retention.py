"""What is old and finished goes, a little at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orbit_server.loops.loop import Loop, Report
from orbit_server.retention.sweep import KINDS, RetentionFigures, Sweep

NAME: Final = "retention"


def retention(sweep: Sweep, interval_ms: int) -> Loop:
    """The loop: one lap after another, with a rest between them."""

    async def run_once(at: int) -> Report:
        gone = await sweep.lap(at)
        return Report(gone, gone)

    return Loop(NAME, run_once, interval_ms)


def figures(seen: RetentionFigures) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Samples for metrics (`FAMILIES` says what they are)."""
    for kind in KINDS:
        yield "orbit_purged_total", {"kind": kind}, seen.gone[kind]
    yield "orbit_purge_bites_total", {}, seen.bites
    yield "orbit_purge_laps_total", {}, seen.laps
    yield "orbit_purge_lap_seconds", {}, seen.lap_seconds
    yield "orbit_purging_workflows", {}, seen.purging
    yield "orbit_purge_held_back_seconds", {}, seen.held_back_s


FAMILIES: Final = (
    ("orbit_purged_total", "counter", "What this node's retention took away, by kind."),
    ("orbit_purge_bites_total", "counter", "Transactions of retention."),
    ("orbit_purge_laps_total", "counter", "Looks of retention through everything."),
    ("orbit_purge_lap_seconds", "gauge", "How long the last look took."),
    ("orbit_purging_workflows", "gauge", "Workflows whose rows are going, counted up to a thousand."),
    ("orbit_purge_held_back_seconds", "gauge", "How far events that somebody has still to get hold it back."),
)
