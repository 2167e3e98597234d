"""Every misuse is refused while the workflow is built: a code, the author's line, what to write instead."""

# What is written here is wrong on purpose.
# mypy: ignore-errors

import contextlib
import inspect
import math
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import orbit_sdk as orbit
from tests.unit.builder.shop import (
    ANSWER,
    Color,
    Inner,
    Made,
    Order,
    Pair,
    Result,
    compiled,
    everything,
    look,
    nodes,
    pay,
    refused,
    work,
)

DAY = timedelta(days=1)


WORKFLOW_FILE = inspect.getfile(refused)
"""Where the workflow function itself is written: the place of what it returns."""


def wait(**given: Any) -> Result:
    return ANSWER.wait(**{"match": "a", "timeout": DAY, "on_timeout": "REVIEW", **given})


def poll(**given: Any) -> Result:
    usual: dict[str, Any] = {
        "every": timedelta(seconds=30),
        "within": timedelta(hours=1),
        "state": lambda s: s.state,
        "pending": {"open"},
        "succeeded": {"done"},
    }
    return orbit.poll(lambda: look("a"), **{**usual, **given})


def if_(order: Order) -> Any:
    if work("a").state == "done":
        return None
    return None


def chained(order: Order) -> Any:
    return 1 < order.rows < 5


def while_(order: Order) -> Any:
    while order.ok:
        pass


def assert_(order: Order) -> Any:
    assert order.ok


def made_in_branch(order: Order) -> Any:
    kept: list[Any] = []
    orbit.branch(
        orbit.when(order.ok, lambda: kept.append(work("a"))),
        orbit.otherwise(lambda: None),
    )
    return work(kept[0].value)


def made_in_sibling(order: Order) -> Any:
    kept: list[Any] = []
    orbit.parallel(lambda: kept.append(work("a")), lambda: work(kept[0].value))


def condition_of_arm(order: Order) -> Any:
    kept: list[Any] = []
    orbit.branch(
        orbit.when(order.ok, lambda: kept.append(work("a").value == "x")),
        orbit.otherwise(lambda: None),
    )
    orbit.branch(orbit.when(kept[0], lambda: None), orbit.otherwise(lambda: None))


def after_fail(order: Order) -> Any:
    try:
        orbit.fail("BAD", "bad")
    except BaseException:  # noqa: BLE001 - what is tested
        work("a")


def tuples(order: Order) -> Any:
    value = orbit.branch(
        orbit.when(order.ok, lambda: orbit.parallel(lambda: work("a"), lambda: work("b"))),
        orbit.otherwise(lambda: (work("c"), work("d"))),
    )
    return work(value)


def again_and_again(order: Order) -> Any:
    work("a")
    return orbit.branch(orbit.when(order.ok, lambda: again_and_again(order)), orbit.otherwise(lambda: None))


async def async_arm() -> None:
    return None


def generator_arm() -> Any:
    yield 1


def unpack(order: Order) -> Any:
    _first, _second = order.tags
    return None


MISUSES: list[tuple[str, Callable[[Order], Any]]] = [
    # A reference has no truth yet.
    ("TRUTH_VALUE", if_),
    ("TRUTH_VALUE", chained),
    ("TRUTH_VALUE", while_),
    ("TRUTH_VALUE", assert_),
    ("TRUTH_VALUE", lambda order: order.ok and order.rows),
    ("TRUTH_VALUE", lambda order: order.ok or order.rows),
    ("TRUTH_VALUE", lambda order: not order.ok),
    ("TRUTH_VALUE", lambda order: not (order.rows > 1)),
    # Nothing runs while a definition is built.
    ("TEXT", lambda order: f"{order.order_id}"),
    ("TEXT", lambda order: str(order.order_id)),
    ("TEXT", lambda order: "job-%s" % order.order_id),  # noqa: UP031 - what is tested
    ("COMPUTE", lambda order: len(order.tags)),
    ("COMPUTE", lambda order: [tag for tag in order.tags]),  # noqa: C416 - what is tested
    ("COMPUTE", lambda order: order.rows + 1),
    ("COMPUTE", lambda order: 1 + order.rows),
    ("COMPUTE", lambda order: -order.rows),
    ("COMPUTE", lambda order: int(order.rows)),
    ("COMPUTE", lambda order: float(order.rows)),
    ("COMPUTE", lambda order: "a" in order.tags),
    ("COMPUTE", lambda order: order.tags[0]),
    ("COMPUTE", lambda order: order.tags[1:]),
    ("COMPUTE", unpack),
    ("COMPUTE", lambda order: round(order.price, 2)),
    ("INVERT", lambda order: ~order.ok),
    ("INVERT", lambda order: ~(order.rows > 1)),
    ("HASH", lambda order: {order.order_id: 1}),
    ("HASH", lambda order: [hash(order)]),
    ("HASH", lambda order: {order.rows > 1}),
    ("AWAIT", lambda _: work("a").__await__()),
    ("NO_FIELD", lambda _: work("a").result()),
    ("NO_FIELD", lambda order: order.order_id.upper()),
    ("NO_FIELD", lambda order: order.order_idd),
    ("NO_FIELD", lambda order: order.model_dump()),
    ("ASSIGN", lambda order: setattr(order, "rows", 3)),
    # Optional values.
    ("OPTIONAL", lambda order: work(order.note)),
    ("OPTIONAL", lambda order: order.maybe.code),
    # Arms.
    ("OUTSIDE_ARM", made_in_branch),
    ("OUTSIDE_ARM", made_in_sibling),
    ("OUTSIDE_ARM", condition_of_arm),
    ("AFTER_FAIL", after_fail),
    ("ENDLESS", again_and_again),
    ("UNUSABLE", tuples),
    ("EAGER_ARM", lambda order: orbit.when(order.ok, work("a"))),
    ("EAGER_ARM", lambda _: orbit.otherwise(None)),
    ("EAGER_ARM", lambda _: orbit.parallel(work("a"), work("b"))),
    ("FORGOTTEN_CALL", lambda _: orbit.parallel(work, look)),
    ("EMPTY_ARM", lambda _: orbit.parallel(lambda: work("a"), lambda: None)),
    ("PARALLEL", lambda _: orbit.parallel(lambda: work("a"))),
    ("PARALLEL", lambda _: orbit.parallel(lambda: work("a"), lambda: orbit.fail("BAD", "bad"))),
    ("ASYNC", lambda _: orbit.parallel(lambda: work("a"), async_arm)),
    ("GENERATOR", lambda _: orbit.parallel(lambda: work("a"), generator_arm)),
    ("BRANCH", lambda order: orbit.branch(orbit.when(order.ok, lambda: None))),
    ("BRANCH", lambda _: orbit.branch(orbit.otherwise(lambda: None))),
    ("BRANCH", lambda order: orbit.branch(order.ok)),
    (
        "BRANCH",
        lambda order: orbit.branch(orbit.otherwise(lambda: None), orbit.when(order.ok, lambda: None)),
    ),
    ("NOT_A_CONDITION", lambda _: orbit.when(True, lambda: None)),
    ("NOT_A_CONDITION", lambda order: orbit.when(order.order_id, lambda: None)),
    ("NOT_A_CONDITION", lambda order: order.ok & True),
    ("NOT_A_CONDITION", lambda _: orbit.all_of()),
    ("NOT_A_CONDITION", lambda _: orbit.is_null("a")),
    # Comparisons.
    ("COMPARE", lambda order: order.rows == "1"),
    ("COMPARE", lambda order: order.order_id < 3),
    ("COMPARE", lambda order: order.rows == order.order_id),
    ("COMPARE", lambda order: order.ok < False),
    ("COMPARE", lambda order: order.inner == Inner(code="a")),
    ("COMPARE", lambda order: order.rows < None),
    ("COMPARE", lambda order: (order.rows > 1) == (order.rows > 2)),
    ("COMPARE", lambda order: orbit.is_in(order.order_id, "ab")),
    ("COMPARE", lambda order: orbit.is_in(order.order_id, [])),
    ("NO_SUCH_VALUE", lambda order: order.color == "rde"),
    ("NO_SUCH_VALUE", lambda _: work("a").state == "dnoe"),
    # Arguments.
    ("ARGUMENT", lambda _: work()),
    ("ARGUMENT", lambda _: work("a", 1, 2)),
    ("ARGUMENT", lambda _: work("a", cuont=1)),
    ("ARGUMENT", lambda _: work("a", text="b")),
    ("ARGUMENT", lambda _: orbit.build(Result)),
    ("ARGUMENT", lambda _: orbit.build(Result, vlaue="a")),
    ("ARGUMENT", lambda _: orbit.build(Made, name="a")),
    ("BUILD", lambda _: orbit.build(dict, a=1)),
    ("LITERAL", lambda _: work(3)),
    ("LITERAL", lambda _: work("a", "b")),
    ("LITERAL", lambda _: work("a", True)),
    ("LITERAL", lambda _: work(None)),
    ("LITERAL", lambda _: work("a", 2**60)),
    ("LITERAL", lambda _: everything(tags=("a",))),
    ("LITERAL", lambda _: everything(tags={"a"})),
    ("LITERAL", lambda _: everything(anything=b"a")),
    ("LITERAL", lambda _: everything(anything=Decimal("1.5"))),
    ("LITERAL", lambda _: everything(anything={"a": [datetime(2026, 1, 1, tzinfo=UTC)]})),
    ("LITERAL", lambda _: everything(anything=[{"a": (1, 2)}])),
    ("LITERAL", lambda _: everything(anything=object())),
    ("LITERAL", lambda _: everything(anything={1: 2})),
    ("LITERAL", lambda _: everything(anything=time(1))),
    ("LITERAL", lambda _: everything(ratio=math.nan)),
    ("LITERAL", lambda _: everything(ratio=math.inf)),
    ("LITERAL", lambda _: everything(due=datetime(2026, 1, 1))),  # noqa: DTZ001 - what is tested
    ("LITERAL", lambda _: everything(price="1.5")),
    ("LITERAL", lambda _: everything(color="red")),
    ("LITERAL", lambda _: orbit.build(Result, value="a", state="dnoe")),
    ("CONDITION_VALUE", lambda order: everything(anything=order.rows > 1)),
    ("CONDITION_VALUE", lambda order: order.rows > 1),
    ("FORGOTTEN_CALL", lambda _: work(look)),
    ("FORGOTTEN_CALL", lambda _: work(lambda: "a")),
    ("CONSTRUCTOR", lambda order: work(Result(value=order.order_id).value)),
    ("CONSTRUCTOR", lambda order: everything(anything=Pair(left=order.order_id))),
    ("CONSTRUCTOR", lambda order: everything(anything=(order.order_id, 1))),
    # Keys.
    ("KEY", lambda _: (work.options(key="a")("a"), work.options(key="a")("b"))),
    ("KEY", lambda _: work.options(key="input")("a")),
    ("KEY", lambda _: work.options(key="Nope")("a")),
    ("KEY", lambda _: work.options(key="é")("a")),
    ("KEY", lambda _: (work("a"), work.options(key="work")("b"))),
    # Times.
    *[
        ("DURATION", lambda _, value=value: orbit.sleep(value))
        for value in (5, "5m", timedelta(0), timedelta(microseconds=1), -DAY, True, math.inf, None)
    ],
    ("DURATION", lambda _: orbit.sleep(timedelta(milliseconds=1, microseconds=1))),
    ("DURATION", lambda order: orbit.sleep(order.order_id)),
    ("LITERAL", lambda _: orbit.sleep(datetime(2026, 1, 1))),  # noqa: DTZ001 - what is tested
    ("DURATION", lambda _: work.options(attempt_timeout=30)("a")),
    ("DURATION", lambda _: wait(timeout=30)),
    # Options.
    ("OPTION", lambda _: work.options(priority=10)("a")),
    ("OPTION", lambda _: work.options(priority=True)("a")),
    ("OPTION", lambda _: work.options(retry=3)("a")),
    ("OPTION", lambda _: work.options(retry=orbit.Retry(attempts=0))("a")),
    ("OPTION", lambda _: work.options(review="look")("a")),
    ("OPTION", lambda _: work.options(on_failure="RETRY")("a")),
    ("OPTION", lambda _: wait(on_timeout="IGNORE")),
    ("OPTION", lambda _: wait(early="YES")),
    ("OPTION", lambda _: orbit.parallel(lambda: work("a"), lambda: work("b"), on_arm_failure="NO")),
    # Matching.
    ("NOT_EXHAUSTIVE", lambda order: orbit.match(order.color, {Color.RED: lambda: None})),
    ("NOT_EXHAUSTIVE", lambda order: orbit.match(order.order_id, {"a": lambda: None})),
    ("NOT_EXHAUSTIVE", lambda order: orbit.match(order.ok, {True: lambda: None})),
    ("NOT_EXHAUSTIVE", lambda order: orbit.match(order.note, {"a": lambda: None})),
    (
        "NOT_EXHAUSTIVE",
        lambda _: pay.options(
            on_failure=lambda f: orbit.match(f.code, {"NO_FUNDS": lambda: orbit.fail("A", "a")})
        )("a"),
    ),
    ("NO_SUCH_VALUE", lambda order: orbit.match(order.color, {"RED": lambda: None, "blue": lambda: None})),
    ("MATCH", lambda order: orbit.match(order.color, {})),
    ("MATCH", lambda _: orbit.match("a", {"a": lambda: None})),
    ("MATCH", lambda order: orbit.when_some(order.order_id, lambda _: None)),
    ("MATCH", lambda _: wait(match=None)),
    # Texts, failures, signals.
    ("TEXT_TEMPLATE", lambda _: orbit.text("a-{}")),
    ("TEXT_TEMPLATE", lambda order: orbit.text("a-{x}", order.order_id)),
    ("TEXT_TEMPLATE", lambda order: orbit.text("a-{}", order.price > Decimal(1))),
    ("TEXT_TEMPLATE", lambda order: orbit.text("a-{}", order.tags)),
    ("TEXT_TEMPLATE", lambda order: orbit.text("a-{}", order.ok)),
    ("FAIL", lambda _: orbit.fail("bad", "x")),
    ("FAIL", lambda _: orbit.fail("BAD", "")),
    ("META", lambda _: ANSWER.meta(work("a"))),
    ("META", lambda _: ANSWER.meta(wait(on_timeout=lambda: orbit.build(Result, value="a")))),
    # Polls.
    ("POLL_QUERY", lambda _: orbit.poll(lambda: work("a"), **_poll())),
    ("POLL_QUERY", lambda _: orbit.poll(lambda: None, **_poll())),
    ("POLL_QUERY", lambda _: orbit.poll(lambda: (look("a"), look("b"))[0], **_poll())),
    ("EAGER_ARM", lambda _: orbit.poll(look("a"), **_poll())),
    ("POLL_STATE", lambda _: poll(state=lambda s: s)),
    ("POLL_STATE", lambda order: poll(state=lambda _: order.order_id)),
    ("POLL_STATE", lambda _: poll(pending="open")),
    ("NO_SUCH_VALUE", lambda _: poll(pending={"opne"})),
    ("OPTION", lambda _: poll(failed={"void"})),
    ("OPTION", lambda _: poll(on_failed="FAIL")),
    ("OPTION", lambda _: poll(max_rounds=0)),
    ("POLL_QUERY", lambda _: orbit.poll(lambda: (orbit.sleep(DAY), look("a"))[1], **_poll())),
    ("POLL_STATE", lambda _: poll(state=lambda s: (work("a"), s.state)[1])),
    # Nesting.
    ("NESTED", lambda order: [other(order)]),
    ("NESTED", lambda _: other.compile()),
]


def _poll() -> dict[str, Any]:
    return {
        "every": timedelta(seconds=30),
        "within": timedelta(hours=1),
        "state": lambda s: s.state,
        "pending": {"open"},
        "succeeded": {"done"},
    }


@orbit.workflow("shop.other", version=1)
def other(order: Order) -> None:
    work("a")


@pytest.mark.parametrize(
    ("code", "body"), MISUSES, ids=[f"{n:03}-{code}" for n, (code, _) in enumerate(MISUSES)]
)
def test_a_misuse_is_refused_with_its_code_and_the_author_s_line(
    code: str, body: Callable[[Order], Any]
) -> None:
    error = refused(body)
    assert error.reason == code, str(error)
    assert error.problems[0].instead
    assert error.place is not None
    assert error.place.file in (__file__, WORKFLOW_FILE)
    assert error.place.line > 1
    assert error.place.column >= 1
    assert error.problems[0].found


def test_the_place_is_the_line_and_column_of_the_misuse() -> None:
    error = refused(if_)
    lines, start = inspect.getsourcelines(if_)
    assert error.place is not None
    assert (error.place.line, error.place.column) == (start + 1, lines[1].index("work") + 1)


def test_a_swallowed_misuse_still_fails_the_compile() -> None:
    def body(order: Order) -> Any:
        try:
            if order.ok:
                return None
        except Exception:  # noqa: BLE001 - what is tested
            work("a")
        return None

    assert refused(body).reason == "TRUTH_VALUE"


def test_every_misuse_is_reported_at_once() -> None:
    def body(order: Order) -> Any:
        for attempt in (lambda: len(order.tags), lambda: str(order.rows)):
            with contextlib.suppress(Exception):
                attempt()
        return order.nothing

    assert [one.code for one in refused(body).problems] == ["COMPUTE", "TEXT", "NO_FIELD"]


def test_fail_passes_through_a_broad_except() -> None:
    def body(order: Order) -> Any:
        try:
            orbit.fail("BAD", "bad")
        except Exception:  # noqa: BLE001 - what is tested
            work("a")

    assert list(nodes(body)) == ["bad"]


def test_an_error_inside_an_arm_that_is_caught_outside_spoils_the_build() -> None:
    def broken() -> Any:
        work("a")
        raise ValueError("oh")

    def body(order: Order) -> Any:
        try:
            orbit.parallel(lambda: work("b"), broken)
        except ValueError:
            return None

    error = refused(body)
    assert error.reason == "ARM_RAISED"
    assert "AFTER_FAIL" not in {one.code for one in error.problems}


def test_an_author_s_own_error_is_passed_on() -> None:
    def body(order: Order) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        refused(body)


def test_near_matches_are_named() -> None:
    assert "did you mean order_id?" in str(refused(lambda order: order.order_idd))
    assert "did you mean count?" in str(refused(lambda _: work("a", cuont=1)))
    assert "did you mean done?" in str(refused(lambda _: work("a").state == "dnoe"))


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="max_retries"):
        work.options(max_retries=3)


def test_a_builder_call_outside_a_workflow_is_refused() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: work("a"),
        lambda: orbit.sleep(DAY),
        lambda: orbit.build(Result, value="a"),
        lambda: orbit.fail("A", "a"),
        lambda: orbit.parallel(lambda: None, lambda: None),
        orbit.instance,
        lambda: ANSWER.wait(match="a", timeout=DAY, on_timeout="FAIL"),
        lambda: orbit.text("a"),
    ]
    for call in calls:
        with pytest.raises(orbit.BuildError) as caught:
            call()
        assert caught.value.reason == "OUTSIDE_WORKFLOW"
        assert caught.value.place is not None
        assert caught.value.place.file == __file__


def test_a_reference_is_refused_after_its_workflow_was_built() -> None:
    kept: list[Any] = []

    def body(order: Order) -> Any:
        kept.extend([order, order.ok])

    compiled(body)
    with pytest.raises(orbit.BuildError) as caught:
        _ = kept[0].rows
    assert caught.value.reason == "FINISHED"
    place = caught.value.place
    assert place is not None
    assert "kept[0].rows" in Path(place.file).read_text().splitlines()[place.line - 1]

    def later(order: Order) -> Any:
        work(kept[0])

    for misuse in (later, lambda _: kept[0].rows, lambda _: kept[0].rows == 1, lambda _: kept[1] & kept[1]):
        error = refused(misuse)
        assert error.reason == "OTHER_WORKFLOW"
        assert "shop.flow" in str(error)


def test_a_swallowed_use_of_another_workflow_still_fails() -> None:
    kept: list[Any] = []

    def body(order: Order) -> Any:
        kept.append(order)

    def later(order: Order) -> Any:
        with contextlib.suppress(Exception):
            bool(kept[0])

    compiled(body)
    assert refused(later).reason == "TRUTH_VALUE"


def test_calling_a_workflow_is_refused() -> None:
    with pytest.raises(orbit.BuildError) as caught:
        other(None)
    assert caught.value.reason == "CALLED"


def test_an_aware_instant_is_written_as_it_is_named() -> None:
    found = nodes(lambda _: orbit.sleep(datetime(2026, 1, 1, tzinfo=UTC)))
    assert found["sleep"]["until"] == {"const": "2026-01-01T00:00:00Z"}
