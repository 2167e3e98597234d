"""A bank that is away: what its workers run, and the workflow that pays through it."""

from __future__ import annotations

import os

from pydantic import BaseModel

import orbit_sdk as orbit
from tests.crash.channel import ask
from tests.crash.flows import effect


class Payment(BaseModel):
    name: str


class Receipt(BaseModel):
    receipt: str


@orbit.handler("outage.pay", version=1, queue="bank", recovery=orbit.Recovery.VERIFIABLE)
async def pay(ctx: orbit.TaskContext, name: str) -> Receipt:
    """Payments whose name ends in `!` reach the bank, but nobody hears of it."""
    if name.endswith("!"):
        await effect(ctx, "VERIFIABLE")
    raise orbit.NeedsPerson("the bank hung up")


@pay.verify
async def was_paid(
    ctx: orbit.TaskContext, name: str
) -> orbit.Happened[Receipt] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    """The bank's journal."""
    answer = await ask(os.environ["CHANNEL"], do="fence", key=ctx.effect_key, generation=ctx.generation)
    if answer["receipt"] is None:
        return orbit.CannotHappenAnyMore()
    return orbit.Happened(Receipt(receipt=answer["receipt"]))


@orbit.workflow("outage.payment", version=1)
def payment(order: Payment) -> Receipt:
    """One payment, whose effect nobody knows while the bank is away."""
    return pay(order.name)
