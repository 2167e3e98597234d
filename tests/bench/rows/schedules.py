"""B12: looking for due schedules costs the same with many that are not due."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, insert

from orbit_sdk.protocol.schedules import ScheduleSpec
from orbit_sdk.values.ids import IdSeed
from orbit_server.bootstrap import open_database
from orbit_server.clock import ManualClock, new_seed
from orbit_server.schedules.commands import CreateSchedule, Ordered
from orbit_server.schedules.lifecycle import ScheduleState
from orbit_server.schedules.rows import SCHEDULES, ScheduleRow
from orbit_server.schedules.specs import accepted_spec
from orbit_server.schedules.sweeps import sweep_schedules
from orbit_server.schedules.targets import Means
from orbit_server.settings import Settings
from orbit_server.storage.commands import CommandKey
from orbit_server.storage.database import Database
from orbit_server.storage.migrations import migrate
from orbit_server.storage.tables import schedules
from orbit_server.weave.definitions.catalog import Catalog
from orbit_server.weave.state.running import Weave
from tests.bench.sizes import Size

Figures = dict[str, Any]

DUE: Final = 100
IDLE: Final = 100_000
_ROUNDS: Final = 7
_NAMESPACE: Final = "0" * 32
_MINUTE: Final = 60_000_000
_SPEC: Final = {
    "timing": {"kind": "RATE", "every_s": 60, "anchor": "2020-01-01T00:00:00Z"},
    "misfire": {"policy": "SKIP"},
    "overlap": {"policy": "ALLOW"},
    "target": {"kind": "TASK", "queue": "bench", "handler": "bench.run", "handler_version": 1},
}


def scans(_size: Size) -> Figures:
    """Milliseconds to fire 100 due schedules, alone and beside 100,000 that are not due (SQLite)."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_scans(f"sqlite:///{Path(folder) / 'bench.db'}"))


@dataclass(frozen=True, slots=True)
class _Bench:
    database: Database
    weave: Weave
    clock: ManualClock

    async def look(self) -> tuple[float, int]:
        """Seconds of one look, and how many schedules it ran."""
        at = await self.database.now()
        began = time.perf_counter()
        report = await sweep_schedules(self.database, Means(self.weave), lambda: new_seed(self.clock), at)
        return time.perf_counter() - began, report.moved


async def _scans(url: str) -> Figures:
    migrate(url)
    clock = ManualClock()  # the file's clock is the machine's, and this is the machine's
    async with open_database(Settings(database=url), clock) as database:
        bench = _Bench(database, Weave(Catalog(database)), clock)
        await _make(bench)
        alone_idle, alone_due = await _rounds(bench)
        await database.write(_fill)
        beside_idle, beside_due = await _rounds(bench)
    return {
        "due": DUE,
        "not_due": IDLE,
        "ms_empty_look_alone": alone_idle * 1_000,
        "ms_empty_look_beside": beside_idle * 1_000,
        "ms_due_look_alone": alone_due * 1_000,
        "ms_due_look_beside": beside_due * 1_000,
        "ratio": beside_due / alone_due,
    }


async def _rounds(bench: _Bench) -> tuple[float, float]:
    """Medians of looks that find nothing, and of looks that find the due ones."""
    idle, due = [], []
    for _ in range(_ROUNDS):
        idle.append((await bench.look())[0])
        bench.clock.advance(_MINUTE)
        took, moved = await bench.look()
        assert moved == DUE, moved
        due.append(took)
    return statistics.median(idle), statistics.median(due)


async def _make(bench: _Bench) -> None:
    clock = bench.clock
    spec = accepted_spec(ScheduleSpec.model_validate(_SPEC), await bench.database.now())
    orders = []
    for number in range(DUE):
        seed = new_seed(clock)
        key = CommandKey(_NAMESPACE, "schedule.create", str(number), "bench")
        by = Ordered(key, seed.nth(0), _NAMESPACE, "bench", None, new_seed(clock), Means(bench.weave))
        orders.append(bench.database.committer.post(CreateSchedule(by, "due", spec, paused=False)))
    await asyncio.gather(*orders)


def _fill(conn: Connection) -> None:
    """Schedules that are due next year, one second apart."""
    seed = IdSeed(1, "idle")
    row = ScheduleRow(
        id="",
        namespace_id=_NAMESPACE,
        name="idle",
        state=ScheduleState.ACTIVE,
        version=1,
        revision=1,
        accounted_to=1,
        due_at=0,
        unfinished=0,
        waiting=0,
        created_at=1,
        last=1,
    )
    due_at = 2_000_000_000_000_000
    rows = [replace(row, id=seed.nth(each), due_at=due_at + each * 1_000_000) for each in range(IDLE)]
    values = [{name: getattr(each, name) for name in SCHEDULES.columns} for each in rows]
    conn.execute(insert(schedules), values)
