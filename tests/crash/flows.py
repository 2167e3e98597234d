"""Handlers of every recovery level and workflows made of them; what workers run while they are killed."""

from __future__ import annotations

import asyncio
import os
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel

import orbit_sdk as orbit
from tests.crash.channel import ask

SOON = orbit.Retry(backoff=timedelta(milliseconds=100), max_backoff=timedelta(milliseconds=500), attempts=15)
"""Many attempts: kills are not supposed to exhaust them."""


class Order(BaseModel):
    """`name` is the business key; `outcome` what the world is going to say."""

    name: str
    outcome: Literal["fine", "refused", "receipt"] = "fine"


class Receipt(BaseModel):
    receipt: str


class Status(BaseModel):
    state: Literal["pending", "done"]


class Word(BaseModel):
    text: str


GO = orbit.Signal("storm.go", Word)
DONE = orbit.Signal("storm.done", Status)


async def effect(ctx: orbit.TaskContext, recovery: str, step: str | None = None) -> Receipt:
    """Have the effect, and then take a moment to say so: the moment in which it hurts most to be killed."""
    answer = await ask(
        os.environ["CHANNEL"],
        do="apply",
        key=ctx.effect_key,
        recovery=recovery,
        step=step or ctx.step_key or "",
        workflow=ctx.workflow_id or "",
        attempt=ctx.attempt_id,
        generation=ctx.generation,
    )
    if answer.get("refused"):
        raise orbit.Retryable("an older attempt is fenced off", effect=orbit.Effect.UNKNOWN)
    await asyncio.sleep(answer["linger_ms"] / 1000)
    return Receipt(receipt=answer["receipt"])


@orbit.handler("storm.look", version=1, queue="storm", recovery=orbit.Recovery.READ_ONLY)
async def look(ctx: orbit.TaskContext, name: str) -> Word:
    await asyncio.sleep(0.01)
    return Word(text=f"seen {name}")


@orbit.handler("storm.put", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT)
async def put(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "IDEMPOTENT")


@orbit.handler("storm.send", version=1, queue="storm", recovery=orbit.Recovery.VERIFIABLE)
async def send(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "VERIFIABLE")


@send.verify
async def was_sent(
    ctx: orbit.TaskContext, name: str
) -> orbit.Happened[Receipt] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    answer = await ask(os.environ["CHANNEL"], do="fence", key=ctx.effect_key, generation=ctx.generation)
    if answer["receipt"] is None:
        return orbit.CannotHappenAnyMore()
    return orbit.Happened(Receipt(receipt=answer["receipt"]))


@orbit.handler("storm.stamp", version=1, queue="storm", recovery=orbit.Recovery.MARKED)
async def stamp(ctx: orbit.TaskContext, name: str) -> Receipt:
    await asyncio.sleep(0.01)
    await ctx.begin_effect()
    return await effect(ctx, "MARKED")


@orbit.handler("storm.pay", version=1, queue="storm", recovery=orbit.Recovery.CONSERVATIVE)
async def pay(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "CONSERVATIVE")


@orbit.handler("storm.undeclared", version=1, queue="storm")
async def undeclared(ctx: orbit.TaskContext, name: str) -> Receipt:
    return await effect(ctx, "CONSERVATIVE")


@orbit.handler(
    "storm.reserve", version=1, queue="storm", recovery=orbit.Recovery.IDEMPOTENT, errors=("REFUSED",)
)
async def reserve(ctx: orbit.TaskContext, name: str, outcome: str) -> Receipt:
    if outcome == "refused":
        raise orbit.Final("REFUSED", "there is none left")
    return await effect(ctx, "IDEMPOTENT")


@orbit.handler("storm.status", version=1, queue="storm", recovery=orbit.Recovery.READ_ONLY)
async def status(ctx: orbit.TaskContext, name: str) -> Status:
    answer = await ask(os.environ["CHANNEL"], do="status", job=name)
    return Status(state=answer["state"])


class ChainEnd(BaseModel):
    seen: str
    put: str
    sent: str
    stamped: str
    paid: str


@orbit.workflow("storm.chain", version=1)
def chain(order: Order) -> ChainEnd:
    """Every recovery level, one after the other."""
    seen = look.options(retry=SOON)(order.name)
    first = put.options(retry=SOON)(order.name)
    sent = send.options(retry=SOON)(order.name)
    stamped = stamp.options(retry=SOON)(order.name)
    paid = pay.options(retry=SOON)(order.name)
    return orbit.build(
        ChainEnd,
        seen=seen.text,
        put=first.receipt,
        sent=sent.receipt,
        stamped=stamped.receipt,
        paid=paid.receipt,
    )


class FanEnd(BaseModel):
    left: str
    said: str
    marked: str
    after: str


@orbit.workflow("storm.fan", version=1)
def fan(order: Order) -> FanEnd:
    """Three arms and a join; one arm waits for a signal."""

    def spoken() -> Word:
        word = GO.wait(match=order.name, timeout=timedelta(hours=1), on_timeout="FAIL")
        put.options(retry=SOON, key="after_signal")(order.name)
        return word

    left, said, marked = orbit.parallel(
        lambda: send.options(retry=SOON, key="left")(order.name),
        spoken,
        lambda: stamp.options(retry=SOON, key="marked")(order.name),
    )
    after = put.options(retry=SOON, key="after")(order.name)
    return orbit.build(FanEnd, left=left.receipt, said=said.text, marked=marked.receipt, after=after.receipt)


class AskEnd(BaseModel):
    how: str
    state: str


@orbit.workflow("storm.ask", version=1)
def question(order: Order) -> AskEnd:
    """A catch arm, a timer, a poll that a receipt may overtake, and a branch."""

    def refused(failure: orbit.Failure) -> Receipt:
        return put.options(retry=SOON, key="give_up")(order.name)

    reserve.options(retry=SOON, on_failure=refused)(order.name, order.outcome)
    orbit.sleep(timedelta(milliseconds=200))
    final = orbit.poll(
        lambda: status.options(retry=SOON)(order.name),
        every=timedelta(milliseconds=300),
        within=timedelta(minutes=10),
        max_rounds=300,
        state=lambda s: s.state,
        pending={"pending"},
        succeeded={"done"},
        final_signal=DONE.match(order.name),
        key="poll",
    )
    how = orbit.branch(
        orbit.when(
            order.outcome == "receipt", lambda: put.options(retry=SOON, key="thank")(order.name).receipt
        ),
        orbit.otherwise(lambda: look.options(retry=SOON, key="look_again")(order.name).text),
    )
    return orbit.build(AskEnd, how=how, state=final.state)


@orbit.workflow("storm.one", version=1)
def undeclared_one(order: Order) -> Receipt:
    return undeclared(order.name)


WORKFLOWS = (chain, fan, question)
