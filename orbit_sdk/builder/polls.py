"""POLL: ask again and again, bounded in rounds and time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any, cast

from typing_extensions import TypeVar

from orbit_sdk.builder.arms import End, check_arm
from orbit_sdk.builder.conditions import constant_of
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.durations import milliseconds
from orbit_sdk.builder.express import Target
from orbit_sdk.builder.graph import OpenExit, Scope
from orbit_sdk.builder.guards import is_whole
from orbit_sdk.builder.refs import Ref, RefData, ref_data
from orbit_sdk.builder.signals import SignalMatch, match_key, register_signal
from orbit_sdk.builder.steps import failure_arm, work_policy
from orbit_sdk.builder.trace import Captured, Trace
from orbit_sdk.handlers.options import FailurePolicy
from orbit_sdk.handlers.type_schemas import Schema
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import DEFAULT_LIMITS

__all__ = ["poll"]

S = TypeVar("S")
K = TypeVar("K")

_QUERY = "write lambda: handler(…), with one call and nothing else"


def poll(  # noqa: PLR0913 - the vocabulary of a poll
    query: Callable[[], S],
    *,
    every: timedelta,
    within: timedelta,
    state: Callable[[S], K],
    pending: Collection[K],
    succeeded: Collection[K],
    failed: Collection[K] = (),
    on_failed: FailurePolicy | Callable[[S], S] | None = None,
    final_signal: SignalMatch[S] | None = None,
    max_rounds: int | None = None,
    key: str | None = None,
) -> S:
    """Ask with `query` every `every` until the state is no longer pending, `within` at most.

    `state` picks the field that is sorted into `pending`, `succeeded` and `failed`; a value in none goes
    to a person, and so does a poll whose rounds or time are used up. `on_failed` is needed where `failed` is
    given.
    """
    trace = current_trace("orbit.poll")
    asked = _capture(trace, query)
    result = trace.handler_schemas[asked.handler.key][1]
    every_ms = milliseconds(trace, every, "every")
    within_ms = milliseconds(trace, within, "within")
    rounds = _rounds(trace, max_rounds, within_ms // every_ms)
    attempts = max(1, min(DEFAULTS.attempts_read_only, DEFAULT_LIMITS.attempts_over_rounds // rounds))
    path, chosen = _state_path(trace, state, result)
    where = f"the states of {asked.handler.key}"
    states: dict[str, list[Json]] = {}
    for name, values in (("pending", pending), ("succeeded", succeeded), ("failed", failed)):
        states[name] = [
            constant_of(trace, one, chosen, f"{name} of {where}") for one in _listed(trace, values, name)
        ]
    body: dict[str, Any] = {
        **work_policy(trace, asked.handler, asked.options, attempts),
        "input": asked.input,
        "every_ms": every_ms,
        "within_ms": within_ms,
        "max_rounds": rounds,
        "state": {"path": path, **states},
        "on_exhausted": "REVIEW",
    }
    if final_signal is not None:
        body["final_signal"] = _final(trace, final_signal, result)
    step = trace.make_key(key or asked.options.key, asked.handler.__name__)
    return cast(S, _declare(trace, step, body, (on_failed, bool(states["failed"])), asked, result))


def _declare(
    trace: Trace, step: str, body: dict[str, Any], failing: tuple[Any, bool], asked: Captured, result: Schema
) -> Any:
    on_failed, has_failed = failing
    if has_failed and on_failed is None:
        raise trace.refuse(
            "OPTION", f"{step} has failed states and no on_failed", 'write on_failed="FAIL", or a function'
        )
    if not has_failed and on_failed is not None:
        raise trace.refuse(
            "OPTION", f"{step} has on_failed and no failed states", "give failed={…}, or leave it out"
        )
    if on_failed is None or on_failed in ("REVIEW", "FAIL"):
        if on_failed is not None:
            body["on_failed"] = on_failed
        trace.add("POLL", step, body)
        return trace.ref({"ref": step}, result)
    if not callable(on_failed):
        raise trace.refuse("OPTION", f"on_failed is {on_failed!r}", 'write "REVIEW", "FAIL" or a function')
    draft = trace.add("POLL", step, body)
    return failure_arm(
        trace,
        main=End(trace.ref({"ref": step}, result), [OpenExit(draft, "next")]),
        catch=(OpenExit(draft, "on_failed"), on_failed, ({"ref": step}, result)),
        target=Target(asked.handler.signature.hints["return"], result),
    )


def _capture(trace: Trace, query: Callable[[], Any]) -> Captured:
    """The one handler call inside the query; it becomes no step of its own."""
    check_arm(trace, query, "the query of a poll")
    before, trace.capturing = trace.capturing, []
    count = len(trace.drafts)
    try:
        given = query()
        captured = trace.capturing
    finally:
        trace.capturing = before
    if len(trace.drafts) != count:
        raise trace.refuse("POLL_QUERY", "the query declares steps of its own", _QUERY)
    if len(captured) != 1 or given is not captured[0].ref:
        raise trace.refuse(
            "POLL_QUERY", f"the query makes {len(captured)} calls, or returns something else", _QUERY
        )
    asked = captured[0]
    if not asked.handler.recovery.may_poll:
        raise trace.refuse(
            "POLL_QUERY",
            f"{asked.handler.key} is {asked.handler.recovery}; a poll only asks",
            "poll a handler that is READ_ONLY or IDEMPOTENT",
        )
    for name in ("on_failure", "total_timeout"):
        if getattr(asked.options, name) is not None:
            raise trace.refuse(
                "OPTION", f"the query of a poll has {name}", "use within= and on_failed= of the poll"
            )
    return asked


def _rounds(trace: Trace, given: object, fitting: int) -> int:
    if given is None:
        return max(1, min(fitting, DEFAULT_LIMITS.rounds))
    if not is_whole(given, 1):
        raise trace.refuse("OPTION", f"max_rounds is {given!r}", "write a whole number from 1 on")
    return given


def _state_path(trace: Trace, state: Callable[[Any], Any], result: Schema) -> tuple[list[Json], Schema]:
    check_arm(trace, state, "the state of a poll")
    scope = Scope("the state of a poll", trace.scope, [])
    count = len(trace.drafts)
    chosen = state(Ref(RefData(trace, {"ref": "result"}, result, scope)))
    if len(trace.drafts) != count:
        raise trace.refuse("POLL_STATE", "state declares steps", "let it give a field: lambda s: s.field")
    data = ref_data(chosen) if isinstance(chosen, Ref) else None
    path = data.expr.get("path") if data is not None and data.scope is scope else None
    if data is None or not isinstance(path, list):
        raise trace.refuse(
            "POLL_STATE", f"state gives {chosen!r}", "let it give a field of the result: lambda s: s.field"
        )
    return path, data.schema


def _listed(trace: Trace, values: object, name: str) -> list[Any]:
    if isinstance(values, str | Ref) or not isinstance(values, Collection):
        raise trace.refuse("POLL_STATE", f"{name} is {values!r}", 'write a set of values: {"done"}')
    return list(values)


def _final(trace: Trace, final: object, result: Schema) -> dict[str, Json]:
    if not isinstance(final, SignalMatch):
        raise trace.refuse("OPTION", f"final_signal is {final!r}", "write final_signal=SIGNAL.match(key)")
    schema = register_signal(trace, final.name, final.body)
    if schema != result:
        raise trace.refuse(
            "POLL_QUERY",
            f"the body of {final.name} is not the type that the query gives",
            "let the receipt and the query have one type",
        )
    return {"signal": final.name, "match": match_key(trace, final.match, "match of final_signal")}
