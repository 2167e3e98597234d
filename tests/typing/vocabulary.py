"""What type checkers must see of each construct. Never run: mypy and pyright read it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal, assert_type

from pydantic import BaseModel

import orbit_sdk as orbit


class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


class Order(BaseModel):
    order_id: str
    amount: Decimal
    level: Level
    due: datetime
    note: str | None = None
    tags: list[str] = []
    phone: Annotated[str, orbit.Sensitive] = ""


class Receipt(BaseModel):
    number: str
    state: Literal["open", "paid", "void"]


class Approval(BaseModel):
    granted: bool


APPROVAL = orbit.Signal("order.approval", Approval)
PAID = orbit.Signal("order.paid", Receipt)


@orbit.handler("order.price", version=1, recovery=orbit.Recovery.READ_ONLY)
def price(ctx: orbit.TaskContext, order: Order, *, rush: bool = False) -> Decimal:
    return order.amount


@orbit.handler("order.charge", version=2, recovery=orbit.Recovery.VERIFIABLE, errors=("NO_FUNDS",))
async def charge(ctx: orbit.TaskContext, order_id: str, amount: Decimal) -> Receipt:
    return Receipt(number=order_id, state="open")


@charge.verify
async def did_charge(
    ctx: orbit.TaskContext, order_id: str, amount: Decimal
) -> orbit.Happened[Receipt] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    return orbit.CannotTell()


@orbit.handler("order.look", version=1, recovery=orbit.Recovery.READ_ONLY)
async def look(ctx: orbit.TaskContext, number: str) -> Receipt:
    return Receipt(number=number, state="paid")


@orbit.handler("order.tell", version=1)
def tell(ctx: orbit.TaskContext, text: str) -> None:
    return None


@orbit.contract("order.ship", version=1, recovery=orbit.Recovery.VERIFIABLE, errors=("NO_TRUCK",))
def ship(ctx: orbit.TaskContext, number: str, *, fast: bool = False) -> Receipt:
    raise NotImplementedError


@ship.implement
async def ship_it(ctx: orbit.TaskContext, number: str, *, fast: bool = False) -> Receipt:
    return Receipt(number=number, state="paid")


@ship.verify
def was_shipped(
    ctx: orbit.TaskContext, number: str, fast: bool
) -> orbit.Happened[Receipt] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    return orbit.CannotHappenAnyMore()


@orbit.contract("order.count", version=1)
async def count(ctx: orbit.TaskContext, order: Order) -> int:
    raise NotImplementedError


@count.implement(run_in="process")
def count_it(ctx: orbit.TaskContext, order: Order) -> int:
    return len(order.tags)


def again(failure: orbit.Failure) -> Receipt:
    assert_type(failure.code, str)
    return orbit.match(
        failure.code,
        {
            "NO_FUNDS": lambda: orbit.fail("NO_FUNDS", "no money"),
            "ATTEMPTS_EXHAUSTED": lambda: orbit.build(Receipt, number="none", state="void"),
        },
        otherwise=lambda: orbit.build(Receipt, number="none", state="void"),
    )


@orbit.workflow("order.sell", version=3, title="Sell", on_failure="FAIL")
def sell(order: Order) -> Receipt:
    assert_type(order.order_id, str)
    amount = price(order, rush=True)
    assert_type(amount, Decimal)
    first, second, third = orbit.parallel(
        lambda: price(order), lambda: look(order.order_id), lambda: tell(order.order_id)
    )
    assert_type(first, Decimal)
    assert_type(second, Receipt)
    assert_type(third, None)
    charged = charge.options(priority=7, on_failure=again, retry=orbit.Retry(attempts=3))(
        order.order_id, amount=amount
    )
    assert_type(charged, Receipt)
    approval = APPROVAL.wait(match=order.order_id, timeout=timedelta(days=1), on_timeout="REVIEW")
    assert_type(approval, Approval)
    assert_type(APPROVAL.meta(approval).actor, str)
    noted = orbit.when_some(order.note, lambda note: look(number=note))
    assert_type(noted, Receipt | None)
    some = orbit.when_some(order.note, lambda note: look(number=note), lambda: look("none"))
    assert_type(some, Receipt)
    final = orbit.poll(
        lambda: look(charged.number),
        every=timedelta(minutes=1),
        within=timedelta(hours=4),
        state=lambda receipt: receipt.state,
        pending={"open"},
        succeeded={"paid"},
        failed={"void"},
        on_failed="FAIL",
        final_signal=PAID.match(charged.number),
    )
    assert_type(final, Receipt)
    shipped = ship(charged.number, fast=True)
    assert_type(shipped, Receipt)
    assert_type(ship.options(priority=9)(charged.number), Receipt)
    assert_type(count(order), int)
    each = orbit.parallel_each(["north", "south"], lambda region: look(f"at-{region}"))
    assert_type(each, tuple[Receipt, ...])
    levels = orbit.parallel_each(Level, lambda level: ship(level.value), on_arm_failure="LET_OTHERS_FINISH")
    assert_type(levels, tuple[Receipt, ...])
    assert_type(orbit.parallel_each(["a", "b"], tell), tuple[None, ...])
    orbit.sleep(timedelta(seconds=5))
    orbit.sleep(order.due)
    by_level = orbit.match(order.level, {Level.LOW: lambda: look("a"), Level.HIGH: lambda: look("b")})
    assert_type(by_level, Receipt)
    assert_type(orbit.instance().workflow_id, str)
    assert_type(orbit.text("order-{}", order.order_id), str)
    assert_type(orbit.all_of(order.amount > 5, orbit.not_(orbit.is_null(order.note))), bool)
    return orbit.branch(
        orbit.when(approval.granted & (order.amount > Decimal(5)), lambda: final),
        orbit.when(orbit.is_in(order.level, [Level.LOW]), lambda: orbit.fail("LOW", "too low")),
        orbit.otherwise(lambda: orbit.build(Receipt, number="none", state="void")),
    )


assert_type(sell, orbit.Workflow[Order, Receipt])
