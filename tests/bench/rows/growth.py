"""B5: a step costs the same in a long workflow as in a short one, in a full database as in an empty one."""

from __future__ import annotations

from typing import Any

from tests.bench.fill import fill
from tests.bench.rows.throughput import chains
from tests.bench.sizes import Size
from tests.bench.stage import Stage

Figures = dict[str, Any]


def long_chains(built: Stage, size: Size) -> Figures:
    """CPU per step of workflows of 200 steps against as many of 50: the groups are of one size."""
    short = chains(built, size, definition="bench.chain50", batch=100, count=size.chains, steps=50)
    long = chains(built, size, definition="bench.chain200", batch=100, count=size.chains, steps=200)
    return {
        "cpu_ms_per_step_50": short["cpu_ms_per_step"],
        "cpu_ms_per_step_200": long["cpu_ms_per_step"],
        "ratio": long["cpu_ms_per_step"] / short["cpu_ms_per_step"],
    }


def full_database(built: Stage, size: Size) -> Figures:
    """CPU per step of chain3 beside many waiting instances and finished tasks, against an empty database."""
    empty = chains(built, size, definition="bench.chain3", batch=100)
    fill(built, waiting=size.waiting, finished=size.finished)
    full = chains(built, size, definition="bench.chain3", batch=100)
    return {
        "waiting": size.waiting,
        "finished_tasks": size.finished,
        "cpu_ms_per_step_empty": empty["cpu_ms_per_step"],
        "cpu_ms_per_step_full": full["cpu_ms_per_step"],
        "ratio": full["cpu_ms_per_step"] / empty["cpu_ms_per_step"],
    }
