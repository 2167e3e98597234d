"""PARALLEL and JOIN: all arms run, and the workflow goes on when every one has arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast, overload

from typing_extensions import TypeVar

from orbit_sdk.builder.arms import End, check_arm, lift, run_arm
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.graph import Draft, OpenExit, Scope
from orbit_sdk.builder.late import refuse_late_binding
from orbit_sdk.builder.refs import Ref
from orbit_sdk.builder.same import warn_of_equal_arms
from orbit_sdk.builder.trace import Trace, near
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.problems import caller_place

__all__ = ["OnArmFailure", "parallel", "parallel_each"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
T = TypeVar("T")
V = TypeVar("V")

OnArmFailure = Literal["STOP_OTHERS", "LET_OTHERS_FINISH"]


@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    /,
    *,
    on_arm_failure: OnArmFailure = ...,
    key: str | None = ...,
    title: str | None = ...,
) -> tuple[A, B]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    /,
    *,
    on_arm_failure: OnArmFailure = ...,
    key: str | None = ...,
    title: str | None = ...,
) -> tuple[A, B, C]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    /,
    *,
    on_arm_failure: OnArmFailure = ...,
    key: str | None = ...,
    title: str | None = ...,
) -> tuple[A, B, C, D]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    /,
    *,
    on_arm_failure: OnArmFailure = ...,
    key: str | None = ...,
    title: str | None = ...,
) -> tuple[A, B, C, D, E]: ...
@overload
def parallel(
    a: Callable[[], A],
    b: Callable[[], B],
    c: Callable[[], C],
    d: Callable[[], D],
    e: Callable[[], E],
    f: Callable[[], F],
    /,
    *,
    on_arm_failure: OnArmFailure = ...,
    key: str | None = ...,
    title: str | None = ...,
) -> tuple[A, B, C, D, E, F]: ...
@overload
def parallel(
    *arms: Callable[[], A],
    on_arm_failure: OnArmFailure = ...,
    key: str | None = ...,
    title: str | None = ...,
) -> tuple[A, ...]: ...
def parallel(
    *arms: Callable[[], Any],
    on_arm_failure: OnArmFailure = "STOP_OTHERS",
    key: str | None = None,
    title: str | None = None,
    **absent: object,
) -> tuple[Any, ...]:
    """Run all arms at once and give what each returns, in order, when all have arrived.

    `on_arm_failure` says what a failed arm does to the others: stop them, or let them finish first.
    """
    trace = current_trace("orbit.parallel")
    _refuse_other_joins(trace, absent)
    if len(arms) < 2:
        found = f"orbit.parallel is given {len(arms)} arms"
        raise trace.refuse("PARALLEL", found, "give it two functions or more")
    for number, arm in enumerate(arms, 1):
        check_arm(trace, arm, f"arm {number} of orbit.parallel")
    refuse_late_binding(trace, arms, "orbit.parallel")
    return _fork(trace, arms, _body(trace, on_arm_failure, title), key)


def parallel_each(
    constants: Iterable[V],
    arm: Callable[[V], T],
    *,
    on_arm_failure: OnArmFailure = "STOP_OTHERS",
    key: str | None = None,
    title: str | None = None,
) -> tuple[T, ...]:
    """Run `arm(constant)` for every constant at once; what each returns, in their order.

    The constants are known when the workflow is built: a list in the source, never a reference. One constant
    alone makes no parallel: its arm simply runs here.
    """
    trace = current_trace("orbit.parallel_each")
    items = _constants(trace, constants)
    if not isinstance(arm, Handler):  # a handler of one value is a function of it already
        check_arm(trace, arm, "orbit.parallel_each")
    body = _body(trace, on_arm_failure, title)
    if len(items) == 1:
        return (arm(items[0]),)
    return cast("tuple[T, ...]", _fork(trace, [_with(arm, item) for item in items], body, key))


def _constants(trace: Trace, constants: object) -> list[Any]:
    if isinstance(constants, Ref):
        raise trace.refuse(
            "PARALLEL",
            f"orbit.parallel_each is given {constants!r}: how many items it has is known only at run time",
            "start one workflow per item (a batch of starts), or do all items in one handler",
        )
    if isinstance(constants, set | frozenset):
        raise trace.refuse(
            "PARALLEL", "orbit.parallel_each is given a set, which has no order", "give it a list"
        )
    if isinstance(constants, str | bytes) or not isinstance(constants, Iterable):
        found = f"orbit.parallel_each is given {constants!r}"
        raise trace.refuse("PARALLEL", found, 'give it a list of constants: ["north", "south"]')
    items = list(constants)
    if not items:
        raise trace.refuse("PARALLEL", "orbit.parallel_each is given no constant", "give it at least one")
    return items


def _with(arm: Callable[[Any], Any], item: object) -> Callable[[], Any]:
    return lambda: arm(item)


_JOINS_ALL = "a JOIN goes on when every arm has arrived; first-wins and partial joins do not exist"
_INSTEAD_OF_RACE = (
    "let one handler ask both and give the first answer, or wait for one signal whose body says who answered"
)


def _refuse_other_joins(trace: Trace, absent: Mapping[str, object]) -> None:
    """An option that `parallel` does not have: as Python says it, with a word about other joins."""
    for name in absent:
        meant = near(name, ("on_arm_failure", "key", "title"))
        found = f"orbit.parallel has no option {name!r}{meant or f': {_JOINS_ALL}'}"
        trace.refuse("OPTION" if meant else "ABSENT", found, _INSTEAD_OF_RACE if not meant else "write that")
        raise TypeError(f"parallel() got an unexpected keyword argument {name!r}")


def _body(trace: Trace, on_arm_failure: object, title: str | None) -> dict[str, Any]:
    if on_arm_failure not in ("STOP_OTHERS", "LET_OTHERS_FINISH"):
        found = f"on_arm_failure is {on_arm_failure!r}"
        raise trace.refuse("OPTION", found, 'write "STOP_OTHERS" or "LET_OTHERS_FINISH"')
    return (
        {"on_arm_failure": on_arm_failure}
        if title is None
        else {
            "on_arm_failure": on_arm_failure,
            "title": title,
        }
    )


def _fork(
    trace: Trace, arms: Sequence[Callable[[], Any]], body: dict[str, Any], key: str | None
) -> tuple[Any, ...]:
    fork = Draft("PARALLEL", key or "orbit.parallel", body, caller_place())
    if key is not None:
        fork.key = trace.make_key(key, key)
    trace.place_node(fork, None)
    spans: list[tuple[int, int]] = []
    ends: list[End] = []
    for number, arm in enumerate(arms):
        start = len(trace.drafts)
        ends.append(_run(trace, fork, number, arm))
        spans.append((start, len(trace.drafts)))
    if key is None:
        fork.key = trace.make_key(None, "_and_".join(fork.exits[f"arms.{n}"].key for n in range(len(arms))))
    warn_of_equal_arms(trace, fork, spans, ends)
    trace.scope.open = [item for end in ends for item in end.open]
    fork.join = trace.add("JOIN", trace.make_key(None, f"{fork.key}_done"), {})
    return tuple(lift(trace, end) for end in ends)


def _run(trace: Trace, fork: Draft, number: int, arm: Callable[[], Any]) -> End:
    name = f"arm {number + 1} of orbit.parallel"
    scope = Scope(name, trace.scope, [OpenExit(fork, f"arms.{number}")])
    end = run_arm(trace, scope, arm)
    if not scope.made:
        raise trace.refuse("EMPTY_ARM", f"{name} has no step", "give it a step, or leave the arm out")
    if not end.open:
        raise trace.refuse(
            "PARALLEL", f"{name} fails on every way", "let it end well on some way, or use a branch"
        )
    return end
