"""Source texts of small applications, and how tests put them into a folder."""

from __future__ import annotations

from pathlib import Path

PAYMENT = """\
from datetime import timedelta

from pydantic import BaseModel

import orbit_sdk as orbit


class Order(BaseModel):
    number: str
    amount: int


class Approval(BaseModel):
    granted: bool


class Payment(BaseModel):
    receipt: str | None


APPROVAL = orbit.Signal("order.approval", Approval)


@orbit.handler("order.pay", version=1, queue="payments", recovery=orbit.Recovery.IDEMPOTENT)
async def pay(ctx: orbit.TaskContext, number: str, amount: int) -> Payment:
    if amount < 0:
        raise orbit.Final("NEGATIVE")
    if amount == 0:
        raise orbit.NeedsPerson("nothing to pay")
    return Payment(receipt=f"{number}/{amount}")


@orbit.workflow("orders.payment", version=1, on_failure="FAIL")
def payment(order: Order) -> Payment:
    approval = APPROVAL.wait(
        match=order.number,
        timeout=timedelta(days=2),
        on_timeout=lambda: orbit.build(Approval, granted=False),
    )
    return orbit.branch(
        orbit.when(approval.granted, lambda: pay(order.number, order.amount)),
        orbit.otherwise(lambda: orbit.build(Payment, receipt=None)),
    )
"""

MISSPELT = PAYMENT.replace("approval.granted, lambda", "approval.grated, lambda")
CHANGED = PAYMENT.replace("timedelta(days=2)", "timedelta(days=3)")

COUNT = """\
import orbit_sdk as orbit


@orbit.handler("text.count", version=1, queue="texts", recovery=orbit.Recovery.READ_ONLY)
def count(ctx: orbit.TaskContext, text: str) -> int:
    return len(text)


@orbit.workflow("texts.length", version=2)
def length(text: str) -> int:
    return count(text)
"""


def write(folder: Path, **texts: str) -> Path:
    """Write each text as `<name>.py`; the folder."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder
