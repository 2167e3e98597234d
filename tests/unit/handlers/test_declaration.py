"""Handlers: declared, run as functions, and seen as JSON."""

import sys
import types
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

import orbit_sdk as orbit
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers.errors import Stopped
from orbit_sdk.values.json_strict import Json

T = TypeVar("T")


class Money(BaseModel):
    amount: Decimal
    at: datetime
    tags: list[str] = []


class Context:
    """The least that a handler needs in a unit test."""

    effect_key = "key"


@orbit.handler("bank.pay", version=2, queue="bank", recovery=orbit.Recovery.VERIFIABLE, errors=("NO_FUNDS",))
async def pay(ctx: orbit.TaskContext, money: Money, note: str = "", *, tries: int = 1) -> Money:
    return money


@pay.verify
async def did_pay(
    ctx: orbit.TaskContext, money: Money, note: str, tries: int
) -> orbit.Happened[Money] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    return orbit.Happened(money)


@orbit.handler("bank.count", version=1, run_in="process")
def count(ctx: orbit.TaskContext, tags: list[str] = []) -> int:  # noqa: B006 - what is tested
    tags.append("x")
    return len(tags)


MONEY: Json = {"amount": "1.50", "at": "2026-01-01T00:00:00Z", "tags": ["a"]}


def test_a_declaration_says_what_the_platform_must_know() -> None:
    assert (pay.key, pay.queue, pay.recovery, pay.errors) == (
        "bank.pay@2",
        "bank",
        orbit.Recovery.VERIFIABLE,
        ("NO_FUNDS",),
    )
    assert pay.is_async
    assert pay.can_verify
    assert (count.queue, count.recovery, count.run_in, count.is_async, count.can_verify) == (
        "default",
        orbit.Recovery.CONSERVATIVE,
        "process",
        False,
        False,
    )


async def test_handlers_are_still_functions() -> None:
    ctx: Any = Context()
    money = Money(amount=Decimal(1), at=datetime(2026, 1, 1, tzinfo=UTC))
    assert await pay.run(ctx, money) is money
    assert await count.run(ctx, ["a"]) == 2
    assert await pay.run_verify(ctx, money, "", tries=1) == orbit.Happened(money)
    with pytest.raises(TypeError, match="no verify"):
        await count.run_verify(ctx, [])


async def test_a_verdict_is_one_of_three() -> None:
    @orbit.handler("bank.odd", version=1, recovery=orbit.Recovery.MARKED)
    def odd(ctx: orbit.TaskContext) -> None: ...

    @odd.verify
    def wrong(ctx: orbit.TaskContext) -> orbit.CannotTell:
        return True  # type: ignore[return-value]

    ctx: Any = Context()
    with pytest.raises(TypeError, match="bool"):
        await odd.run_verify(ctx)


def test_parameters_come_from_json_with_defaults() -> None:
    given = pay.parse_parameters({"money": MONEY})
    assert given == {
        "money": Money(amount=Decimal("1.50"), at=datetime(2026, 1, 1, tzinfo=UTC), tags=["a"]),
        "note": "",
        "tries": 1,
    }


def test_mutable_defaults_are_fresh_each_time() -> None:
    first = count.parse_parameters({})
    first["tags"].append("x")
    assert count.parse_parameters({}) == {"tags": []}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "money"),
        ({"money": MONEY, "more": 1}, "more"),
        ({"money": MONEY, "note": 3}, "note"),
        ({"money": MONEY, "tries": True}, "tries"),
        ({"money": MONEY, "tries": 1.5}, "tries"),
        ({"money": {**MONEY, "amount": 1.5, "at": "never"}}, "money.at"),  # type: ignore[dict-item]
        ([], "$"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_with_their_path(value: Json, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        pay.parse_parameters(value)
    assert field in [detail.field for detail in caught.value.details]


def test_results_are_judged_before_they_are_sent() -> None:
    money = Money(amount=Decimal("1.50"), at=datetime(2026, 1, 1, tzinfo=UTC), tags=["a"])
    assert pay.dump_result(money) == MONEY
    assert pay.parse_result(MONEY) == money
    for wrong in ("a", None, {"amount": 1}):
        with pytest.raises(InvalidArgument, match=r"bank\.pay@2"):
            pay.dump_result(wrong)


def test_the_types_of_a_handler_have_a_digest() -> None:
    def declare(result: type) -> Any:
        def work(ctx: orbit.TaskContext, text: str) -> Any: ...

        work.__annotations__["return"] = result
        return orbit.handler("bank.work", version=1)(work)

    assert declare(int).types_digest() == declare(int).types_digest()
    assert declare(int).types_digest() != declare(str).types_digest()
    assert pay.parameters_schema["money"] == {"$ref": "#/types/Money"}
    assert pay.result_schema == {"$ref": "#/types/Money"}
    assert set(pay.types) == {"Money"}


class Owner:
    def method(self, text: str) -> str: ...  # type: ignore[empty-body]


def no_context() -> None: ...


def untyped(ctx: orbit.TaskContext, text) -> None: ...  # type: ignore[no-untyped-def]


def no_result(ctx: orbit.TaskContext, text: str):  # type: ignore[no-untyped-def]
    return None


def many(ctx: orbit.TaskContext, *texts: str) -> None: ...


def named(ctx: orbit.TaskContext, **texts: str) -> None: ...


def nameless(ctx: orbit.TaskContext, text: str, /) -> None: ...


def generator(ctx: orbit.TaskContext) -> Any:
    yield 1


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("HANDLER_SHAPE", no_context),
        ("HANDLER_SHAPE", Owner.method),
        ("HANDLER_SHAPE", many),
        ("HANDLER_SHAPE", named),
        ("HANDLER_SHAPE", nameless),
        ("HANDLER_SHAPE", generator),
        ("HANDLER_SHAPE", Owner),
        ("MISSING_ANNOTATION", untyped),
        ("MISSING_ANNOTATION", no_result),
    ],
)
def test_a_function_that_is_no_handler_is_refused(code: str, function: Any) -> None:
    with pytest.raises(orbit.BuildError) as caught:
        orbit.handler("bank.wrong", version=1)(function)
    assert caught.value.reason == code
    assert caught.value.problems[0].instead


def test_a_generic_handler_is_refused_when_its_types_are_asked_for() -> None:
    def generic(ctx: orbit.TaskContext, value: T) -> T:
        return value

    with pytest.raises(orbit.BuildError) as caught:
        orbit.handler("bank.generic", version=1)(generic).types_digest()
    assert caught.value.reason == "TYPE"


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("NAME", {"name": "Bank.Pay"}),
        ("NAME", {"queue": "Bank"}),
        ("VERSION", {"version": 0}),
        ("VERSION", {"version": True}),
        ("ERRORS", {"errors": ("no_funds",)}),
        ("ERRORS", {"errors": "NO_FUNDS"}),
        ("ERRORS", {"errors": ("A", "A")}),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(code: str, given: dict[str, Any]) -> None:
    with pytest.raises(orbit.BuildError) as caught:
        orbit.handler(**{"name": "bank.pay", "version": 1, **given})
    assert caught.value.reason == code
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_verify_function_takes_the_handler_s_parameters() -> None:
    @orbit.handler("bank.sure", version=1, recovery=orbit.Recovery.VERIFIABLE)
    def sure(ctx: orbit.TaskContext, text: str) -> None: ...

    def other(ctx: orbit.TaskContext, txt: str) -> orbit.CannotTell:
        return orbit.CannotTell()

    def same(ctx: orbit.TaskContext, text: str) -> orbit.CannotTell:
        return orbit.CannotTell()

    with pytest.raises(orbit.BuildError, match="exactly") as caught:
        sure.verify(other)
    assert caught.value.reason == "VERIFY_SHAPE"
    sure.verify(same)
    with pytest.raises(orbit.BuildError, match="already"):
        sure.verify(same)


def test_a_level_that_never_verifies_takes_no_verify_function() -> None:
    def look(ctx: orbit.TaskContext, tags: list[str]) -> orbit.CannotTell:
        return orbit.CannotTell()

    with pytest.raises(orbit.BuildError, match="never verifies"):
        count.verify(look)


def test_a_registry_holds_the_handlers_of_a_module() -> None:
    found = orbit.Registry.of(sys.modules[__name__])
    assert set(found) == {"bank.pay@2", "bank.count@1"}
    assert found["bank.pay@2"] is pay
    assert found.queues() == {"bank", "default"}
    module = types.ModuleType("again")
    module.pay = pay  # type: ignore[attr-defined]
    assert len(orbit.Registry.of(module, pay, [pay, count])) == 2


def test_two_handlers_of_one_key_are_refused() -> None:
    @orbit.handler("bank.pay", version=2)
    def other(ctx: orbit.TaskContext) -> None: ...

    with pytest.raises(orbit.BuildError, match=r"bank\.pay@2"):
        orbit.Registry.of(pay, other)


def test_what_a_handler_raises_says_how_it_ended() -> None:
    assert orbit.Retryable(after=timedelta(microseconds=1)).after_ms == 1
    assert orbit.Retryable().effect is None
    assert str(orbit.Final("NO_FUNDS", "none")) == "NO_FUNDS: none"
    details: Mapping[str, Json] = {"a": 1}
    assert orbit.NeedsPerson("why", details=details).details == {"a": 1}
    with pytest.raises(ValueError, match="no_funds"):
        orbit.Final("no_funds")
    with pytest.raises(ValueError, match="negative"):
        orbit.Retryable(after=timedelta(seconds=-1))


def test_being_stopped_passes_through_a_broad_except() -> None:
    for kind in (orbit.Cancelled, orbit.LeaseLost):
        assert issubclass(kind, Stopped)
        assert not issubclass(kind, Exception)
