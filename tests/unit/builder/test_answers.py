"""What people try first, coming from elsewhere: the answer names the step, the line and what to write."""

# What is written here is wrong on purpose.
# mypy: ignore-errors

import json
import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import orbit_sdk as orbit
from tests.unit.builder.shop import Color, Inner, Order, Result, compiled, everything, nodes, refused, work

DAY = timedelta(days=1)


def told(body: Callable[[Order], Any]) -> str:
    error = refused(body)
    assert error.place is not None
    assert error.place.file == __file__
    return str(error)


def test_asking_a_result_in_an_if_names_step_line_and_branch() -> None:
    def body(order: Order) -> Any:
        return work("a") if work("b").state == "done" else None

    error = refused(body)
    assert error.reason == "TRUTH_VALUE"
    assert "'ref': 'work'" in str(error)
    assert "orbit.branch" in error.problems[0].instead
    assert error.place is not None
    assert error.place.line == body.__code__.co_firstlineno + 1


@pytest.mark.parametrize("body", [lambda _: work("a").result(), lambda _: work("a").get()])
def test_waiting_for_a_reference_says_that_nothing_runs(body: Callable[[Order], Any]) -> None:
    assert "methods cannot run while a definition is built" in told(body)


def test_a_value_of_one_side_names_maker_user_and_side() -> None:
    kept: list[Any] = []

    def body(order: Order) -> Any:
        orbit.branch(
            orbit.when(order.ok, lambda: kept.append(work("a"))), orbit.otherwise(lambda: None), key="side"
        )
        return work(kept[0].value)

    text = told(body)
    assert "'text' of work() uses <ref work.value: string>, made in case 1 of side" in text
    assert "stands in the workflow" in text


def test_a_value_of_a_sibling_arm_names_both_arms() -> None:
    kept: list[Any] = []
    text = told(
        lambda _: orbit.parallel(lambda: kept.append(work("a")), lambda: work(kept[0].value)),
    )
    assert "made in arm 1 of orbit.parallel, but stands in arm 2 of orbit.parallel" in text
    assert "let them meet first" in text


def test_a_handler_that_was_not_called_is_named() -> None:
    assert "did you mean work(…)?" in told(lambda _: work(work))


CARRIED = [
    ("price", Decimal("1.5"), "1.5"),
    ("due", datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
    ("color", Color.BLUE, "blue"),
]


@pytest.mark.parametrize(("name", "value", "expected"), CARRIED)
def test_a_declared_type_carries_its_literal(name: str, value: object, expected: str) -> None:
    assert nodes(lambda _: everything(**{name: value}))["everything"]["input"][name] == {"const": expected}


NEVER = [
    datetime(2026, 1, 1),  # noqa: DTZ001 - what is tested
    Decimal(1),
    {1, 2},
    b"a",
    math.nan,
    -math.inf,
    object(),
    (1, 2),
    frozenset(),
    bytearray(b"a"),
    2**53,
    print,
    work,
    Inner,
]


@pytest.mark.parametrize("value", NEVER, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("deep", [False, True])
def test_what_json_cannot_carry_is_refused_with_its_path(value: object, deep: bool) -> None:
    if value == Decimal(1):
        return  # an untyped parameter takes what JSON can be made of
    text = told(lambda _: everything(anything={"a": [value]} if deep else value))
    assert ("anything' of everything().a[0]" if deep else "anything' of everything()") in text


def test_a_reference_in_a_list_or_dict_is_a_reference() -> None:
    found = nodes(lambda order: everything(tags=[order.order_id, "b"], anything={"a": {"b": order.rows}}))
    given = found["everything"]["input"]
    assert given["tags"]["array"][0] == {"ref": "input", "path": ["order_id"]}
    assert given["anything"]["object"]["a"]["object"]["b"] == {"ref": "input", "path": ["rows"]}
    assert "<ref" not in json.dumps(found)


@pytest.mark.parametrize(
    ("option", "meant"),
    [("retires", "'retry'"), ("total_timeouts", "'total_timeout'"), ("priorty", "'priority'"), ("zeal", "")],
)
def test_an_option_that_does_not_exist_is_told_with_the_nearest_ones(option: str, meant: str) -> None:
    error = refused(lambda _: work.options(**{option: 3})("a"))
    assert error.reason == "OPTION"
    assert error.problems[0].found == f".options(…) has no option '{option}'"
    assert error.problems[0].instead.startswith("write one of key, title, attempt_timeout, ")
    assert meant in error.problems[0].instead
    assert error.place is not None
    assert error.place.file == __file__


def test_an_option_that_a_word_needs_is_named() -> None:
    error = refused(lambda _: orbit.poll(lambda: work("a"), every=DAY))  # type: ignore[call-arg]
    assert error.reason == "OPTION"
    assert "orbit.poll needs within, state, pending, succeeded" in error.problems[0].found


def test_a_function_of_the_author_s_own_keeps_its_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        compiled(lambda _: sleep(evry=1))


def sleep(*, every: int = 0) -> int:
    """Called as one of Orbit's words is."""
    return every


@pytest.mark.parametrize(
    "value", [5, "5m", timedelta(0), timedelta(microseconds=1), -1, True, math.inf, -DAY, None]
)
def test_a_time_has_a_unit_and_is_not_rounded(value: object) -> None:
    assert refused(lambda _: orbit.sleep(value)).reason == "DURATION"
    assert refused(lambda _: work.options(attempt_timeout=value or 5)("a")).reason == "DURATION"


def test_a_text_to_choose_by_needs_an_otherwise() -> None:
    arms = {"a": lambda: None, "b": lambda: None}
    assert "otherwise" in told(lambda order: orbit.match(order.order_id, arms))
    assert "otherwise" in told(lambda order: orbit.match(order.rows, {1: lambda: None}))


def test_the_name_of_a_member_is_not_its_value() -> None:
    by_name = {"RED": lambda: None, "BLUE": lambda: None}
    assert "'RED' is none of its values" in told(lambda order: orbit.match(order.color, by_name))


def test_a_default_or_a_second_parameter_of_a_workflow_is_refused() -> None:
    def tagged(order: Order, tags: list[str] = []) -> None:  # noqa: B006 - what is tested
        tags.append("x")

    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow("shop.tagged", version=1)(tagged)
    assert caught.value.reason == "WORKFLOW_SHAPE"


def test_a_reference_of_another_workflow_names_both() -> None:
    kept: list[Any] = []

    @orbit.workflow("shop.first", version=1)
    def first(order: Order) -> None:
        kept.append(order)

    first.compile()
    text = told(lambda _: work(kept[0].order_id))
    assert "shop.first" in text
    assert "shop.flow" in text


def test_many_threads_build_many_workflows() -> None:
    def build(number: int) -> str:
        def body(order: Order) -> Any:
            for turn in range(20):
                work(f"{number}-{turn}")
            return order

        found = nodes(body)
        return ",".join(
            sorted({found[key]["input"]["text"]["const"].partition("-")[0] for key in found if key != "done"})
        )

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(build, range(16))) == [str(number) for number in range(16)]


def test_a_failed_build_leaves_nothing_behind() -> None:
    def broken() -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        compiled(lambda _: orbit.parallel(lambda: work("a"), broken))
    with pytest.raises(orbit.BuildError) as caught:
        work("a")
    assert caught.value.reason == "OUTSIDE_WORKFLOW"
    assert list(nodes(lambda _: work("a"))) == ["done", "work"]


ELSEWHERE: list[Callable[[Order], Any]] = [
    lambda order: ", ".join(order.order_id for _ in "ab"),
    lambda order: timedelta(seconds=order.rows),
    lambda order: Decimal(order.order_id),
    lambda order: json.dumps({"a": order.order_id}),
    lambda order: re.match("a", order.order_id),
    lambda order: Path(order.order_id),
    lambda order: math.sqrt(order.rows),
    lambda order: order.order_id in "abc",
    lambda order: "abc".startswith(order.order_id),
    lambda order: [*range(order.rows)],
    lambda order: sum([order.rows]),
    lambda order: work(*order.tags),
    lambda order: orbit.parallel(lambda: work(", ".join(order.order_id for _ in "ab")), lambda: work("a")),
]


@pytest.mark.parametrize("body", ELSEWHERE)
def test_code_that_needs_the_value_is_answered_in_the_author_s_line(body: Callable[[Order], Any]) -> None:
    error = refused(body)
    assert error.reason == "COMPUTE", str(error)
    assert "compute it in a handler" in str(error) or "start one workflow per item" in str(error)
    assert error.place is not None
    assert error.place.file == __file__


def test_the_author_s_own_type_error_is_passed_on() -> None:
    with pytest.raises(TypeError, match="mine"):
        compiled(lambda _: (_ for _ in ()).throw(TypeError("mine")))


# Without end.


def flip(order: Order) -> Result:
    coin = work("flip")
    return flip(order) if coin is not None else coin


def ping(order: Order) -> Any:
    work("ping")
    return pong(order)


def pong(order: Order) -> Any:
    return ping(order)


def for_ever(order: Order) -> Any:
    while True:
        work("again")


@pytest.mark.parametrize("body", [flip, ping, for_ever])
def test_what_has_no_end_is_refused_without_a_recursion_error(body: Callable[[Order], Any]) -> None:
    error = refused(body)
    assert error.reason == "ENDLESS"
    assert "orbit.poll" in error.problems[0].instead
    assert error.place is not None
    assert error.place.file == __file__


def test_a_workflow_that_calls_itself_is_told_how_to_go_on() -> None:
    @orbit.workflow("shop.again", version=1)
    def again(order: Order) -> None:
        work("a")
        again(order)

    with pytest.raises(orbit.BuildError) as caught:
        again.compile()
    assert caught.value.reason == "NESTED"
    assert "starts the other workflow" in caught.value.problems[0].instead
