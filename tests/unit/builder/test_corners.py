"""Corners of the language that the usual workflow does not reach."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError, model_validator
from typing_extensions import TypeAliasType

import orbit_sdk as orbit
from tests.unit.builder.shop import ANSWER, Inner, Loose, Order, Pair, Result, look, nodes, refused, work

# Some of what is written here is wrong on purpose.
# mypy: ignore-errors

DAY = timedelta(days=1)
Tags = TypeAliasType("Tags", list[str])


class Checked(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def ordered(self) -> "Checked":
        if self.low > self.high:
            raise ValueError("low above high")
        return self


@dataclass
class Noted:
    name: str = Field(default="x")
    tags: list[str] = field(default_factory=list)


class Bag(BaseModel):
    birth: date
    things: dict[str, int]
    anything: Any
    flag: bool | None


@orbit.handler("corner.take", version=1)
def take(
    ctx: orbit.TaskContext,
    tags: Tags = [],  # noqa: B006 - handlers may have such defaults
    some: Annotated[list[str] | None, Field(max_length=3)] = None,
    loose: Loose | None = None,
    pair: Pair | None = None,
) -> Bag: ...


@orbit.handler("corner.set", version=1)
def set_handler(ctx: orbit.TaskContext, tags: set[str]) -> None: ...


@orbit.handler("corner.void", version=1, errors=("GONE",))
def void(ctx: orbit.TaskContext) -> None: ...


def test_references_can_be_shown_and_copied() -> None:
    seen: list[str] = []

    def body(order: Order) -> None:
        assert copy.copy(order) is order
        assert copy.deepcopy(order) is order
        built = orbit.build(Pair, order.order_id)
        seen.extend(
            repr(one)
            for one in (order, order.inner.code, order.note, work("a"), built, built.right, order.rows > 1)
        )

    nodes(body)
    assert seen == [
        "<ref input: Order>",
        "<ref input.inner.code: string>",
        "<ref input.note: string | null>",
        "<ref work: Result>",
        "<ref made here: Pair>",
        "<ref 3: integer>",
        "<condition {'gt': [{'ref': 'input', 'path': ['rows']}, {'const': 1}]}>",
    ]


def test_conditions_join_from_either_side() -> None:
    def body(order: Order) -> Any:
        condition = (order.ok | (order.rows > 1)) & ((order.rows > 2) | order.ok) & order.ok
        return orbit.branch(orbit.when(condition, lambda: "yes"), orbit.otherwise(lambda: "no"))

    joined = nodes(body)["if_ok"]["cases"][0]["when"]["and"]
    assert [next(iter(part)) for part in joined] == ["or", "or", "eq"]


def test_arms_may_leave_plain_values() -> None:
    def body(order: Order) -> Any:
        return orbit.branch(
            orbit.when(order.ok, lambda: [1, {"a": order.rows}]), orbit.otherwise(lambda: None)
        )

    node = nodes(body)["if_ok_value"]
    assert [item["value"] for item in node["inputs"]] == [
        {"array": [{"const": 1}, {"object": {"a": {"ref": "input", "path": ["rows"]}}}]},
        {"const": None},
    ]


def test_a_tuple_of_the_only_arm_that_goes_on_stays_a_tuple() -> None:
    def body(order: Order) -> Any:
        left, right = orbit.branch(
            orbit.when(order.ok, lambda: orbit.parallel(lambda: work("a"), lambda: look("b"))),
            orbit.otherwise(lambda: orbit.fail("NO", "no")),
        )
        return work(orbit.text("{}{}", left.value, right.value))

    assert nodes(body)["work_2"]["input"]["text"]["text"][0] == {"ref": "work", "path": ["value"]}


def test_dates_and_lists_of_decimals_are_compared_as_what_they_are() -> None:
    def body(order: Order) -> Any:
        bag = take()
        first = bag.birth == date(2026, 1, 2)
        second = orbit.is_in(order.price, [Decimal(1), 2])
        third = order.due < datetime(2026, 1, 1, tzinfo=UTC)
        fourth = bag.flag == True  # noqa: E712 - a reference records it
        fifth = bag.anything == "x"
        whole = orbit.all_of(first, second, third, fourth, fifth)
        return orbit.branch(orbit.when(whole, lambda: 1), orbit.otherwise(lambda: 2))

    first, second, third, fourth, _ = nodes(body)["if_birth"]["cases"][0]["when"]["and"]
    assert first["eq"][1] == {"const": "2026-01-02"}
    assert second == {
        "in": {"value": {"ref": "input", "path": ["price"]}, "among": ["1", "2"]},
        "as": "decimal",
    }
    assert third["as"] == "date-time"
    assert fourth["eq"][1] == {"const": True}


def test_objects_used_as_mappings_are_read_by_key() -> None:
    def body(order: Order) -> Any:
        return orbit.when_some(order.extra["a b"], lambda number: work("a", number))

    assert nodes(body)["work"]["input"]["count"] == {"ref": "input", "path": ["extra", "a b"]}


def test_aliases_and_typed_dicts_take_references() -> None:
    def body(order: Order) -> None:
        take(
            [order.order_id],
            some=[order.order_id],
            loose={"name": order.order_id},
            pair=orbit.build(Pair, order.order_id, right=order.rows),
        )
        take(loose=orbit.build(Loose))

    path = {"ref": "input", "path": ["order_id"]}
    found = nodes(body)
    assert found["take"]["input"] == {
        "tags": {"array": [path]},
        "some": {"array": [path]},
        "loose": {"object": {"name": path}},
        "pair": {"object": {"left": path, "right": {"ref": "input", "path": ["rows"]}}},
    }
    assert found["take_2"]["input"]["loose"] == {"const": {}}


def test_a_constant_is_judged_by_its_model() -> None:
    assert refused(lambda _: orbit.build(Checked, low=2, high=1)).reason == "LITERAL"
    assert nodes(lambda _: orbit.build(Checked, low=1, high=2))["done"]["output"] == {
        "const": {"low": 1, "high": 2}
    }


def test_dataclasses_may_have_pydantic_fields() -> None:
    found = nodes(lambda order: orbit.build(Noted, tags=[order.order_id]))
    assert found["done"]["output"]["object"]["name"] == {"const": "x"}
    assert refused(lambda _: orbit.build(Noted)).reason == "ARGUMENT"
    assert refused(lambda _: orbit.build(Result, "a")).reason == "ARGUMENT"
    assert refused(lambda _: orbit.build(Pair, "a", 1, 2)).reason == "ARGUMENT"


def test_a_step_that_gives_nothing_may_be_caught() -> None:
    def body(order: Order) -> None:
        void.options(on_failure=lambda _failure: None)()
        work("a")

    found = nodes(body)
    assert found["void"]["next"] == "work"
    assert found["void"]["on_failure"] == {"next": "work"}


def test_a_wait_may_have_a_title_and_a_name() -> None:
    def body(order: Order) -> Any:
        return ANSWER.wait(match=order.order_id, timeout=DAY, on_timeout="REVIEW", title="Ask", key="asked")

    assert nodes(body)["asked"]["title"] == "Ask"
    assert repr(ANSWER) == "<signal shop.answer>"
    assert repr(work) == "<handler shop.work@1 CONSERVATIVE>"
    assert ANSWER.dump_body(Result(value="a")) == {"value": "a", "state": "open"}


def test_a_poll_may_state_its_rounds_and_its_policy() -> None:
    def body(order: Order) -> Any:
        return orbit.poll(
            lambda: look.options(title="Look", priority=9)("a"),
            every=timedelta(minutes=1),
            within=timedelta(minutes=10),
            state=lambda s: s.state,
            pending={"open"},
            succeeded={"done"},
            max_rounds=7,
            key="watch",
        )

    node = nodes(body)["watch"]
    assert (node["max_rounds"], node["title"], node["priority"]) == (7, "Look", 9)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("OPTION", {"failed": {"void"}, "on_failed": "IGNORE"}),
        ("OPTION", {"final_signal": ANSWER}),
        ("POLL_QUERY", {"final_signal": orbit.Signal("corner.other", Pair).match("a")}),
    ],
)
def test_wrong_options_of_a_poll_are_refused(code: str, given: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"every": timedelta(seconds=1), "within": timedelta(minutes=1)}
    states: dict[str, Any] = {"state": lambda s: s.state, "pending": {"open"}, "succeeded": {"done"}}
    assert refused(lambda _: orbit.poll(lambda: look("a"), **usual, **states, **given)).reason == code


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (
            "OPTION",
            lambda _: orbit.poll(
                lambda: look.options(on_failure="FAIL")("a"),
                every=DAY,
                within=DAY,
                state=lambda s: s.state,
                pending=(),
                succeeded={"done"},
            ),
        ),
        ("MATCH", lambda _: orbit.when_some("a", lambda v: v)),
        (
            "MATCH",
            lambda order: orbit.match(
                order.color, {"red": lambda: 1, "blue": lambda: 2, orbit.Recovery.MARKED: lambda: 3}
            ),
        ),
        ("NOT_A_CONDITION", lambda _: orbit.is_in("a", ["a"])),
        ("TEXT_TEMPLATE", lambda order: orbit.text("{}", orbit.text("a{}", order.rows))),
        ("TEXT_TEMPLATE", lambda _: orbit.text(3)),
        ("TYPE", lambda _: set_handler(["a"])),
        ("LITERAL", lambda order: take(loose={1: order.order_id})),
        (
            "FORGOTTEN_CALL",
            lambda order: orbit.branch(
                orbit.when(order.ok, lambda: work), orbit.otherwise(lambda: work("a"))
            ),
        ),
        ("GENERATOR", lambda _: orbit.parallel(lambda: work("a"), lambda: (work(c) for c in "ab"))),
    ],
)
def test_further_misuses_are_refused(code: str, body: Any) -> None:
    error = refused(body)
    assert error.reason in (code, "NO_SUCH_VALUE"), str(error)


@orbit.workflow("corner.isinstance", version=1)
def asks_isinstance(order: Order) -> Any:
    return 1 if isinstance(order, Order) else 2


@orbit.workflow("corner.abstract", version=1)
def asks_abstract(order: Order) -> Any:
    return 1 if isinstance(order, Mapping) else 2


@orbit.workflow("corner.pattern", version=1)
def asks_by_pattern(order: Order) -> Any:
    match order.inner:
        case Inner(code="a"):
            return 1
    return 2


@orbit.workflow("corner.constant", version=1)
def asks_by_constant(order: Order) -> Any:
    match order.order_id:
        case "a":
            return 1
    return 2


@pytest.mark.parametrize(
    ("code", "workflow"),
    [
        ("CLASS_TEST", asks_isinstance),
        ("CLASS_TEST", asks_abstract),
        ("MATCH_STATEMENT", asks_by_pattern),
        ("MATCH_STATEMENT", asks_by_constant),
    ],
)
def test_asking_for_the_class_of_a_reference_is_refused(
    code: str, workflow: orbit.Workflow[Any, Any]
) -> None:
    with pytest.raises(orbit.BuildError) as caught:
        workflow.compile()
    assert caught.value.reason == code
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_signal_needs_a_name() -> None:
    with pytest.raises(orbit.BuildError) as caught:
        orbit.Signal("Not a name", Result)
    assert caught.value.reason == "NAME"


def test_a_model_s_own_refusal_is_passed_on() -> None:
    with pytest.raises(ValidationError):
        refused(lambda _: Result(value=3))
