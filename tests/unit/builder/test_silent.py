"""What Python never tells a reference is found in the source of the workflow, or in its bytecode."""

# What is written here is wrong on purpose.
# mypy: ignore-errors
# ruff: noqa: B023

import contextlib
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

import orbit_sdk as orbit
from tests.unit.builder.shop import ANSWER, Color, Inner, Order, Result, look, pay, work

DAY = timedelta(days=1)


def problems(function: Callable[[Order], Any]) -> list[tuple[str, int]]:
    """Codes and line numbers (1 is the line of `def`) of what compiling the function refuses."""
    found: tuple[orbit.BuildError, ...] = ()
    try:
        orbit.workflow("shop.silent", version=1)(function).compile()
    except orbit.BuildError as error:
        found = (error,)
    told = [(one.code, one.place) for error in found for one in error.problems]
    assert all(place is not None and place.file == __file__ for _code, place in told)
    start = function.__code__.co_firstlineno - 1
    return [(code, place.line - start) for code, place in told]


def of_none(order: Order) -> None:
    if order.note is None:
        work("a")


def of_no_none(order: Order) -> None:
    work("a") if order.maybe is not None else work("b")


def of_a_member(order: Order) -> None:
    if order.color is Color.RED:
        work("a")


def of_a_result(order: Order) -> None:
    result = work("a")
    again = result
    work("b" if again.state is None else "c")


def in_a_nested_function(order: Order) -> Any:
    def arm() -> Any:
        return work("a" if order.note is None else "b")

    return orbit.branch(orbit.when(order.ok, arm), orbit.otherwise(lambda: work("c")))


def in_a_lambda(order: Order) -> Any:
    return orbit.branch(
        orbit.when(order.ok, lambda: work("a" if order.note is None else "b")),
        orbit.otherwise(lambda: work("c")),
    )


def of_what_an_arm_is_given(order: Order) -> Any:
    return orbit.when_some(
        order.maybe,
        lambda inner: work("a" if inner.size is None else "b"),
        lambda: work("c"),
    )


def of_a_failure(order: Order) -> Any:
    def caught(failure: orbit.Failure) -> Result:
        return work("a" if failure.code is None else "b")

    return pay.options(on_failure=caught)("x")


def of_a_helper_inside(order: Order) -> None:
    def helper(value: Any) -> None:
        work("a" if value is None else "b")

    helper(order.note)
    helper(order.order_id)


def of_parallel_results(order: Order) -> None:
    left, right = orbit.parallel(lambda: work("a"), lambda: work("b"))
    work("c" if left is right else "d")


def of_a_received_signal(order: Order) -> None:
    answer = ANSWER.wait(match="a", timeout=DAY, on_timeout="FAIL")
    work("c" if answer is None else "d")


def of_a_step_with_options(order: Order) -> None:
    careful = pay.options(priority=9)
    work("c" if careful("a") is None else "d")


def by_class(order: Order) -> None:
    if isinstance(order.maybe, Inner):
        work("a")


def by_type(order: Order) -> None:
    if type(order.order_id) is str:
        work("a")


def by_statement(order: Order) -> None:
    match order.note:
        case None:
            work("a")
        case _:
            work("b")


def by_sequence(order: Order) -> None:
    match order.tags:
        case [_first]:
            work("a")
        case _:
            work("b")


def around_a_step(order: Order) -> None:
    try:
        pay("a")
    except Exception:  # noqa: BLE001 - what is tested
        work("b")


def around_a_nested_step(order: Order) -> None:
    def inner() -> None:
        pay("a")

    with suppress(ValueError):
        inner()


def around_a_word(order: Order) -> None:
    with contextlib.suppress(ValueError):
        orbit.sleep(DAY)


def shown(order: Order) -> None:
    work(f"{order.order_id!r}")


def shown_for_debugging(order: Order) -> None:
    name = f"{order.order_id=}"
    work("a", len(name))


SILENT = [
    (of_none, ("IDENTITY", 2)),
    (of_no_none, ("IDENTITY", 2)),
    (of_a_member, ("IDENTITY", 2)),
    (of_a_result, ("IDENTITY", 4)),
    (in_a_nested_function, ("IDENTITY", 3)),
    (in_a_lambda, ("IDENTITY", 3)),
    (of_what_an_arm_is_given, ("IDENTITY", 4)),
    (of_a_failure, ("IDENTITY", 3)),
    (of_a_helper_inside, ("IDENTITY", 3)),
    (of_parallel_results, ("IDENTITY", 3)),
    (of_a_received_signal, ("IDENTITY", 3)),
    (of_a_step_with_options, ("IDENTITY", 3)),
    (by_class, ("CLASS_TEST", 2)),
    (by_type, ("CLASS_TEST", 2)),
    (by_statement, ("MATCH_STATEMENT", 2)),
    (by_sequence, ("MATCH_STATEMENT", 2)),
    (around_a_step, ("EXCEPT", 2)),
    (around_a_nested_step, ("EXCEPT", 5)),
    (around_a_word, ("EXCEPT", 2)),
    (shown, ("TEXT", 2)),
    (shown_for_debugging, ("TEXT", 2)),
]


@pytest.mark.parametrize(("function", "expected"), SILENT, ids=lambda one: getattr(one, "__name__", ""))
def test_a_silent_misuse_is_found_at_its_line(
    function: Callable[[Order], Any], expected: tuple[str, int]
) -> None:
    assert expected in problems(function)


def first_of_all(order: Order) -> None:
    result = None
    for name in ("a", "b"):
        result = work(name) if result is None else work(result.value)


def a_plain_helper(order: Order) -> None:
    def arm(name: str | None) -> None:
        work("a" if name is None else name)

    arm(None)
    arm("b")


def sometimes_a_reference(order: Order) -> None:
    def helper(value: Any) -> None:
        work("a" if value is None else value)

    helper(None)
    helper(order.order_id)


def around_plain_code(order: Order) -> None:
    try:
        name = {"a": "b"}["c"]
    except KeyError:
        name = "d"
    work(name)


def passed_on(order: Order) -> None:
    try:
        work("a")
    except ValueError as error:
        raise RuntimeError("while the workflow was built") from error


def told(order: Order) -> None:
    if isinstance("a", str) and None is None:
        print(f"{order.order_id!r}")
    try:
        work("a")
    finally:
        assert order is not 3, f"{order!r}"  # noqa: F632 - identity of something else


def parallel_constants(order: Order) -> None:
    orbit.parallel_each(["a", None], lambda item: work("b" if item is None else item))


@pytest.mark.parametrize(
    "function",
    [first_of_all, a_plain_helper, sometimes_a_reference, around_plain_code, passed_on, parallel_constants],
)
def test_plain_values_are_left_alone(function: Callable[[Order], Any]) -> None:
    assert problems(function) == []


def test_what_is_shown_to_the_author_is_no_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert problems(told) == [("IDENTITY", 7)]
    assert capsys.readouterr().out == "<ref input.order_id: string>\n"


def test_a_text_that_repr_gave_is_recognised_where_it_arrives() -> None:
    def made_elsewhere(value: object) -> str:
        return f"job-{value!r}"

    bodies: list[Callable[[Order], Any]] = [
        lambda order: work(made_elsewhere(order.order_id)),
        lambda order: order.order_id == made_elsewhere(order.order_id),
        lambda order: ANSWER.wait(match=repr(order.order_id), timeout=DAY, on_timeout="FAIL"),
        lambda order: orbit.text(repr(order.order_id)),
        lambda order: orbit.fail("BAD", made_elsewhere(order.ok)),
    ]
    for body in bodies:
        with pytest.raises(orbit.BuildError) as caught:
            orbit.workflow("shop.silent", version=1)(_annotated(body)).compile()
        assert caught.value.reason in ("TEXT", "TEXT_TEMPLATE", "FAIL")


def test_a_silent_misuse_is_told_before_an_error_that_follows_from_it() -> None:
    def flow(order: Order) -> None:
        chosen = {} if order.note is None else {"a": "b"}
        work(chosen["c"])

    assert problems(flow) == [("IDENTITY", 2)]


def test_every_silent_misuse_is_told_at_once() -> None:
    def flow(order: Order) -> None:
        if order.note is None and isinstance(order.inner, Inner):
            work(f"{order.order_id!r}")

    assert [code for code, _line in problems(flow)] == ["IDENTITY", "CLASS_TEST", "TEXT"]


def _annotated(body: Callable[[Order], Any]) -> Callable[[Order], Any]:
    def flow(order: Order) -> Any:
        return body(order)

    return flow


WITHOUT_SOURCE = """
def flow(order: Order) -> None:
    {}
"""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("IDENTITY", "work('a') if order.note is None else None"),
        ("IDENTITY", "work('a') if order.inner.code is not None else None"),
        ("IDENTITY", "work('a') if order.color is Color.RED else None"),
        ("IDENTITY", "orbit.branch(orbit.when(order.ok, lambda: order.note is None), orbit.otherwise(work))"),
        ("TEXT", "work(f'{order.order_id!r}')"),
        ("IDENTITY", "work('a') if Color.RED is order.color else None"),
        ("MATCH_STATEMENT", "match order.tags:\n        case [first]: work('a')"),
    ],
)
def test_without_source_the_bytecode_tells(code: str, line: str) -> None:
    names: dict[str, Any] = {"Order": Order, "work": work, "Color": Color, "orbit": orbit}
    exec(compile(WITHOUT_SOURCE.format(line), "<typed in>", "exec"), names)
    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow("shop.typed", version=1)(names["flow"]).compile()
    assert caught.value.reason == code
    assert caught.value.place is not None
    assert (caught.value.place.file, caught.value.place.line in (3, 4)) == ("<typed in>", True)


def test_code_without_source_that_is_right_compiles() -> None:
    names: dict[str, Any] = {"Order": Order, "work": work, "look": look}
    right = "work('a' if look is None else 'b')"
    exec(compile(WITHOUT_SOURCE.format(right), "<typed in>", "exec"), names)
    orbit.workflow("shop.typed", version=1)(names["flow"]).compile()


# Functions made in a loop.


def last_of_a_comprehension(order: Order) -> None:
    orbit.parallel(*[lambda: work(name) for name in ("a", "b")])


def last_of_a_loop(order: Order) -> None:
    arms = []
    for name in ("a", "b"):

        def arm() -> Result:
            return work(name)

        arms.append(arm)
    orbit.parallel(*arms)


def last_of_a_while(order: Order) -> None:
    arms, count = [], 0
    while count < 2:
        count = count + 1
        arms.append(lambda: work("a", count))
    orbit.parallel(*arms)


def last_of_a_mapping(order: Order) -> None:
    orbit.match(order.color, {color: lambda: work(color.value) for color in Color})


def last_of_a_branch(order: Order) -> None:
    orbit.branch(
        *[orbit.when(order.rows == n, lambda: work("a", n)) for n in (1, 2)], orbit.otherwise(lambda: None)
    )


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (last_of_a_comprehension, 2),
        (last_of_a_loop, 5),
        (last_of_a_while, 5),
        (last_of_a_mapping, 2),
        (last_of_a_branch, 3),
    ],
)
def test_functions_that_all_see_the_last_item_are_refused(
    function: Callable[[Order], Any], line: int
) -> None:
    assert problems(function) == [("LATE_BINDING", line)]


def bound(order: Order) -> None:
    orbit.parallel(*[lambda name=name: work(name) for name in ("a", "b")])


def used_at_once(order: Order) -> None:
    for name in ("a", "b"):
        orbit.branch(orbit.when(order.ok, lambda: work(name)), orbit.otherwise(lambda: None))


def made_by_a_function(order: Order) -> None:
    def arm(name: str) -> Callable[[], Result]:
        return lambda: work(name)

    orbit.parallel(*[arm(name) for name in ("a", "b")])


@pytest.mark.parametrize("function", [bound, used_at_once, made_by_a_function])
def test_functions_that_keep_their_own_item_are_right(function: Callable[[Order], Any]) -> None:
    assert problems(function) == []


def test_equal_arms_are_a_warning() -> None:
    @orbit.workflow("shop.equal", version=1)
    def flow(order: Order) -> None:
        orbit.parallel(*[lambda: work(order.order_id) for _ in range(2)])
        orbit.match(order.ok, {True: lambda: pay(work("a").value), False: lambda: pay(work("a").value)})
        orbit.branch(orbit.when(order.rows > 1, lambda: work("a")), orbit.otherwise(lambda: work("b")))
        orbit.branch(orbit.when(order.rows > 1, lambda: None), orbit.otherwise(lambda: None))

    found = [one for one in flow.compile().warnings if one.code == "EQUAL_ARMS"]
    assert [one.node for one in found] == ["by_ok", "work_and_work_2"]
    assert all(one.place is not None and one.place.file == __file__ and one.help for one in found)


def test_an_answer_that_nobody_uses_is_a_warning() -> None:
    @orbit.workflow("shop.unused", version=1)
    def flow(order: Order) -> Result:
        look("lost")
        pay("has an effect")
        orbit.branch(orbit.when(order.ok, lambda: look("dropped")), orbit.otherwise(lambda: look("too")))
        used = look("used")
        return work(used.value)

    found = [one for one in flow.compile().warnings if one.code == "UNUSED_RESULT"]
    assert [one.node for one in found] == ["look", "look_2", "look_3"]
