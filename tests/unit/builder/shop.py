"""Handlers and models that the builder's tests share."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import orbit_sdk as orbit


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    code: str
    size: int | None = None


class Order(BaseModel):
    order_id: str
    rows: int
    ok: bool
    color: Color
    price: Decimal
    due: datetime
    note: str | None
    inner: Inner
    maybe: Inner | None
    tags: list[str]
    extra: dict[str, int]


class Result(BaseModel):
    value: str
    state: Literal["open", "done", "void"] = "open"


@dataclass
class Pair:
    left: str
    right: int = 3


class Loose(TypedDict, total=False):
    name: str


class Made(BaseModel):
    name: str
    items: list[str] = Field(default_factory=list)


@orbit.handler("shop.work", version=1, queue="shop")
def work(ctx: orbit.TaskContext, text: str, count: int = 0) -> Result:
    return Result(value=text * count)


@orbit.handler("shop.look", version=1, queue="shop", recovery=orbit.Recovery.READ_ONLY)
async def look(ctx: orbit.TaskContext, text: str) -> Result:
    return Result(value=text)


@orbit.handler("shop.pay", version=1, queue="shop", errors=("NO_FUNDS",))
def pay(ctx: orbit.TaskContext, text: str) -> Result:
    return Result(value=text)


@orbit.handler("shop.all", version=1, queue="shop")
def everything(
    ctx: orbit.TaskContext,
    *,
    order: Order | None = None,
    inner: Inner | None = None,
    tags: list[str] = [],  # noqa: B006 - handlers may have such defaults
    extra: dict[str, int] | None = None,
    price: Decimal = Decimal("1.50"),
    due: datetime | None = None,
    color: Color = Color.RED,
    anything: Any = None,
    ratio: float = 0.5,
    inners: list[Inner] | None = None,
) -> None:
    return None


ANSWER = orbit.Signal("shop.answer", Result)


def compiled(body: Any, *, on_failure: Literal["REVIEW", "FAIL"] = "REVIEW") -> orbit.Compiled:
    """Compile a function of an order, without caring for its output."""

    def flow(order: Order) -> Any:
        return body(order)

    return orbit.workflow("shop.flow", version=1, on_failure=on_failure)(flow).compile()


def nodes(body: Any, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = compiled(body, **options).definition.to_json()["nodes"]
    return found


def refused(body: Any) -> orbit.BuildError:
    """The error that compiling raises."""
    try:
        compiled(body)
    except orbit.BuildError as error:
        return error
    raise AssertionError("nothing was refused")
