"""PARALLEL and JOIN: all arms run, and the workflow goes on when every one has arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from typing_extensions import TypeVar

from orbit_sdk.builder.arms import End, check_arm, lift, run_arm
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.graph import Draft, OpenExit, Scope
from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.problems import caller_place

__all__ = ["OnArmFailure", "parallel"]

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")

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
) -> tuple[Any, ...]:
    """Run all arms at once and give what each returns, in order, when all have arrived.

    `on_arm_failure` says what a failed arm does to the others: stop them, or let them finish first.
    """
    trace = current_trace("orbit.parallel")
    if on_arm_failure not in ("STOP_OTHERS", "LET_OTHERS_FINISH"):
        found = f"on_arm_failure is {on_arm_failure!r}"
        raise trace.refuse("OPTION", found, 'write "STOP_OTHERS" or "LET_OTHERS_FINISH"')
    if len(arms) < 2:
        found = f"orbit.parallel is given {len(arms)} arms"
        raise trace.refuse("PARALLEL", found, "give it two functions or more")
    for number, arm in enumerate(arms, 1):
        check_arm(trace, arm, f"arm {number} of orbit.parallel")
    body: dict[str, Any] = {"on_arm_failure": on_arm_failure}
    if title is not None:
        body["title"] = title
    fork = Draft("PARALLEL", key or "orbit.parallel", body, caller_place())
    if key is not None:
        fork.key = trace.make_key(key, key)
    trace.place_node(fork, None)
    ends = [_run(trace, fork, number, arm) for number, arm in enumerate(arms)]
    if key is None:
        fork.key = trace.make_key(None, "_and_".join(fork.exits[f"arms.{n}"].key for n in range(len(arms))))
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
