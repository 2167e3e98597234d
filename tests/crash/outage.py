"""A bank that is away: what its workers run, and the workflow that pays through it."""

from __future__ import annotations

from pydantic import BaseModel

import orbit_sdk as orbit


class Payment(BaseModel):
    name: str


class Receipt(BaseModel):
    receipt: str


@orbit.handler("outage.pay", version=1, queue="bank", recovery=orbit.Recovery.CONSERVATIVE)
async def pay(ctx: orbit.TaskContext, name: str) -> Receipt:
    raise ConnectionResetError("the bank hung up")


@orbit.workflow("outage.payment", version=1)
def payment(order: Payment) -> Receipt:
    """One payment, whose effect nobody knows while the bank is away."""
    return pay(order.name)
