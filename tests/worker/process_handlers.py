"""Handlers that run in processes of their own. A module of its own, so that children import little."""

from __future__ import annotations

import os
import time

import orbit_sdk.handlers as orbit
from orbit_sdk.handlers import Recovery, TaskContext


@orbit.handler("p.pid", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT, run_in="process")
def pid(ctx: TaskContext) -> list[str]:
    return [str(os.getpid()), ctx.namespace, ctx.effect_key]


@orbit.handler("p.marked", version=1, queue="jobs", recovery=Recovery.MARKED, run_in="process")
def marked(ctx: TaskContext) -> str:
    ctx.heartbeat({"at": 1})
    ctx.begin_effect_blocking()
    return "done"


@orbit.handler("p.dies", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT, run_in="process")
def dies(ctx: TaskContext) -> None:
    os._exit(3)


@orbit.handler("p.spins", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT, run_in="process")
def spins(ctx: TaskContext) -> None:
    while True:
        time.sleep(0.01)


@orbit.handler("p.cancelled", version=1, queue="jobs", recovery=Recovery.IDEMPOTENT, run_in="process")
def cancelled(ctx: TaskContext) -> None:
    while not ctx.cancelled:
        time.sleep(0.01)
    raise orbit.Cancelled("as asked")


ALL = [pid, marked, dies, spins, cancelled]
