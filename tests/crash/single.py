"""Handlers for one fault each: what they do shows in the channel, and the channel may hold them there."""

from __future__ import annotations

import hashlib
import os
import time
from datetime import timedelta

import orbit_sdk as orbit
from tests.crash.channel import ask
from tests.crash.flows import Receipt, effect


@orbit.handler("single.safe", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
async def safe(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "IDEMPOTENT", name)


@orbit.handler("single.known", version=1, queue="storm", recovery=orbit.Recovery.VERIFIABLE)
async def known(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "VERIFIABLE", name)


@known.verify
async def was_known(
    ctx: orbit.TaskContext, name: str
) -> orbit.Happened[Receipt] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    answer = await ask(os.environ["CHANNEL"], do="fence", key=ctx.effect_key, generation=ctx.generation)
    if answer["receipt"] is None:
        return orbit.CannotHappenAnyMore()
    return orbit.Happened(Receipt(receipt=answer["receipt"]))


@orbit.handler("single.marked", version=1, queue="storm", recovery=orbit.Recovery.MARKED)
async def marked(ctx: orbit.TaskContext, name: str) -> Receipt:
    await ask(os.environ["CHANNEL"], do="pass", step=f"before {name}")
    await ctx.begin_effect()
    return await effect(ctx, "MARKED", name)


@orbit.handler("single.risky", version=1, queue="storm", recovery=orbit.Recovery.CONSERVATIVE)
async def risky(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "CONSERVATIVE", name)


@orbit.handler("single.undeclared", version=1, queue="storm")
async def undeclared(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "CONSERVATIVE", name)


@orbit.handler("single.reads", version=1, queue="storm", recovery=orbit.Recovery.READ_ONLY)
async def reads(ctx: orbit.TaskContext, name: str) -> str:
    await ask(os.environ["CHANNEL"], do="pass", step=name)
    return name


@orbit.handler("single.wrong", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
async def wrong(ctx: orbit.TaskContext, name: str) -> int:
    await effect(ctx, "IDEMPOTENT", name)
    return "no number"  # type: ignore[return-value]  # that is the fault


@orbit.handler("single.huge", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
async def huge(ctx: orbit.TaskContext, name: str) -> str:
    await effect(ctx, "IDEMPOTENT", name)
    return "x" * 5_000_000


@orbit.handler("single.later", version=1, queue="storm", recovery=orbit.Recovery.READ_ONLY)
async def later(ctx: orbit.TaskContext, name: str) -> int:
    await ask(os.environ["CHANNEL"], do="pass", step=name)
    if ctx.attempt == 1:
        raise orbit.Retryable("not yet", after=timedelta(seconds=4))
    return ctx.attempt


@orbit.handler("single.left", version=1, queue="left", recovery=orbit.Recovery.CONSERVATIVE)
async def left(ctx: orbit.TaskContext, name: str) -> str:
    await ask(os.environ["CHANNEL"], do="meet", place=name, of=2)
    return "left"


@orbit.handler("single.right", version=1, queue="right", recovery=orbit.Recovery.CONSERVATIVE)
async def right(ctx: orbit.TaskContext, name: str) -> str:
    await ask(os.environ["CHANNEL"], do="meet", place=name, of=2)
    return "right"


@orbit.handler("single.after", version=1, queue="left", recovery=orbit.Recovery.CONSERVATIVE)
async def after(ctx: orbit.TaskContext, one: str, other: str) -> Receipt:
    return await effect(ctx, "CONSERVATIVE")


@orbit.workflow("single.arms", version=1)
def arms(name: str) -> Receipt:
    one, other = orbit.parallel(lambda: left(name), lambda: right(name))
    return after(one, other)


@orbit.handler("single.blocks_loop", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
async def blocks_loop(ctx: orbit.TaskContext, name: str) -> str:
    time.sleep(3)  # noqa: ASYNC251  # the mistake itself
    return name


@orbit.handler("single.blocks_thread", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
def blocks_thread(ctx: orbit.TaskContext, name: str) -> str:
    ends = time.monotonic() + 3
    while time.monotonic() < ends:
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 300_000)
    return name
