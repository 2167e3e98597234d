"""`python -m tests.bench.run [--size quick] [--rows B1a,B2] [--dialects sqlite] [--json bench.json]`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.bench import report
from tests.bench.floor import floor
from tests.bench.machine import machine
from tests.bench.rows import blocked, commands, connections, growth, latency, requests, schedules, throughput
from tests.bench.sizes import SIZES, Size
from tests.bench.stage import Dialect, Stage, stage
from tests.databases import MariaDb, running_mariadb

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `on_stage` gets a server and a worker; `alone` needs neither database nor server."""

    title: str
    on_stage: Callable[[Stage, Size], Figures] | None = None
    alone: Callable[[Size], Figures] | None = None
    floor: bool = False
    worker: bool = True


ROWS: Final[dict[str, Row]] = {
    "B1a": Row(
        "chain of 3, started singly",
        partial(throughput.chains, definition="bench.chain3", batch=0),
        floor=True,
    ),
    "B1b": Row(
        "chain of 3, started in batches",
        partial(throughput.chains, definition="bench.chain3", batch=100),
        floor=True,
    ),
    "B1c": Row(
        "chain of 3 careful tasks (two-step start), started in batches",
        partial(throughput.chains, definition="bench.careful3", batch=100),
        floor=True,
    ),
    "B2": Row("one chain of 3 at a time on an idle system", latency.idle_chain),
    "B3a": Row("single tasks, submitted singly", partial(throughput.tasks, batch=0), floor=True),
    "B3b": Row("single tasks, submitted in batches", partial(throughput.tasks, batch=100), floor=True),
    "B4": Row("10 parallel tasks and a join", throughput.fans, floor=True),
    "B5a": Row("chains of 200 steps against chains of 50", growth.long_chains),
    "B5b": Row("a full database against an empty one", growth.full_database),
    "B6": Row("start requests against a bare JSON echo", requests.starts, worker=False),
    "B7": Row("claims behind many blocked tasks against none", blocked.head_of_line),
    "B8": Row("timers while B1 runs", latency.timers),
    "B9": Row("idle worker connections", connections.idle_workers),
    "B10": Row("import, check, compile", alone=commands.commands),
    "B12": Row("due schedules beside many that are not", alone=schedules.scans),
}
TITLES: Final = {name: row.title for name, row in ROWS.items()}


def measure(
    name: str, dialect: Dialect, size: Size, mariadb: MariaDb | None, samples: Path | None = None
) -> Figures:
    """One run of one row."""
    row = ROWS[name]
    if row.on_stage is None:
        assert row.alone is not None
        return row.alone(size)
    with stage(dialect, mariadb, samples=samples, worker=row.worker) as built:
        if samples is not None:
            (samples / "on").touch()
        try:
            figures = row.on_stage(built, size)
        finally:
            if samples is not None:
                (samples / "on").unlink()
        if row.floor and samples is None:
            figures |= floor(built.folder, mariadb, size.floor)
    return figures


def run_all(
    names: list[str], dialects: list[Dialect], size: Size, said: Callable[[str], None]
) -> dict[str, dict[str, Figures]]:
    """Every row on every database, `size.runs` times; run by run, so that a slow minute hits all rows."""
    found: dict[str, dict[str, list[Figures]]] = {}
    with _servers(dialects) as servers:
        for turn in range(size.runs):
            for name in names:
                for dialect in dialects if ROWS[name].on_stage else dialects[:1]:
                    figures = measure(name, dialect, size, servers[dialect])
                    label = dialect if ROWS[name].on_stage else "any"
                    found.setdefault(name, {}).setdefault(label, []).append(figures)
                    shown = "  ".join(f"{key} {value:.4g}" for key, value in figures.items())
                    said(f"run {turn + 1}  {name} {label}: {shown}")
    return {
        name: {label: report.summary(runs) for label, runs in labels.items()}
        for name, labels in found.items()
    }


@contextmanager
def _servers(dialects: list[Dialect]) -> Iterator[dict[Dialect, MariaDb | None]]:
    """A durable private MariaDB server if it is wanted."""
    if "mariadb" not in dialects:
        yield {"sqlite": None}
        return
    folder = Path(tempfile.mkdtemp(prefix="orbit-bench-maria-"))
    try:
        with running_mariadb(folder / "m", durable=True) as server:
            yield {"sqlite": None, "mariadb": server}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--size", choices=sorted(SIZES), default="quick")
    parser.add_argument("--rows", default=",".join(ROWS), help="names, or the beginning of names")
    parser.add_argument("--dialects", default="sqlite,mariadb")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--json", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    size = SIZES[options.size]
    if options.runs:
        size = replace(size, runs=options.runs)
    wanted = options.rows.split(",")
    names = [name for name in ROWS if any(name.startswith(one) for one in wanted)]
    about = machine()
    rows = run_all(names, options.dialects.split(","), size, lambda line: print(line, flush=True))
    print(report.table(rows, TITLES))
    report.write(options.json, rows, {**about, "size": options.size})
    return 0


if __name__ == "__main__":
    sys.exit(main())
