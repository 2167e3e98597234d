"""TASK: a handler's call as a node, with every default written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbit_sdk.builder.arms import End, meet, run_arm
from orbit_sdk.builder.durations import milliseconds
from orbit_sdk.builder.express import Target, express
from orbit_sdk.builder.graph import Expr, OpenExit, Scope
from orbit_sdk.builder.guards import is_whole
from orbit_sdk.builder.refs import Ref, RefData
from orbit_sdk.builder.trace import Arguments, Captured, Trace, near
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.options import Guide, Retry, StepOptions
from orbit_sdk.handlers.problems import BuildError
from orbit_sdk.handlers.recovery import Recovery
from orbit_sdk.handlers.type_schemas import Schema
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.json_strict import Json

__all__ = ["declare_step", "failure_arm", "register_handler", "review_guide", "work_policy"]

AnyHandler = Handler[..., Any]
OWN_CODES = ("ATTEMPTS_EXHAUSTED", "EXPIRED")
"""Definite failures that Orbit itself reports, beside a handler's own."""


def declare_step(trace: Trace, handler: AnyHandler, arguments: Arguments, options: StepOptions) -> Any:
    """The TASK of a call; the reference to its result, or to what it and its catch arm leave."""
    parameters, result = register_handler(trace, handler)
    inputs = _bind(trace, handler, arguments, parameters)
    if trace.capturing is not None:
        ref = trace.ref({"const": None}, result)
        trace.capturing.append(Captured(handler, inputs, options, ref))
        return ref
    attempts = DEFAULTS.attempts_read_only if handler.recovery is Recovery.READ_ONLY else DEFAULTS.attempts
    total = DEFAULTS.total_timeout_ms
    if options.total_timeout is not None:
        total = milliseconds(trace, options.total_timeout, "total_timeout")
    body: dict[str, Any] = {
        **work_policy(trace, handler, options, attempts),
        "input": inputs,
        "total_timeout_ms": total,
    }
    policy = trace.on_failure if options.on_failure is None else options.on_failure
    key = trace.make_key(options.key, handler.__name__)
    if policy in ("REVIEW", "FAIL"):
        trace.add("TASK", key, {**body, "on_failure": policy})
        return trace.ref({"ref": key}, result)
    if not callable(policy):
        raise trace.refuse("OPTION", f"on_failure is {policy!r}", 'write "REVIEW", "FAIL" or a function')
    draft = trace.add("TASK", key, body)
    annotation = handler.signature.hints["return"]
    return failure_arm(
        trace,
        main=End(trace.ref({"ref": key}, result), [OpenExit(draft, "next")]),
        catch=(OpenExit(draft, "on_failure"), policy, _failure(handler, key)),
        target=Target(annotation, result),
    )


def failure_arm(
    trace: Trace, *, main: End, catch: tuple[OpenExit, Any, tuple[Expr, Schema] | None], target: Target
) -> Any:
    """Run the function behind a failure exit; what both ways leave."""
    exit_, function, argument = catch
    scope = Scope(f"{exit_.exit} of {exit_.draft.key}", trace.scope, [exit_])
    arguments: tuple[object, ...] = ()
    if argument is not None:
        expr, schema = argument
        arguments = (Ref(RefData(trace, expr, schema, scope)),)
    end = run_arm(trace, scope, function, arguments)
    return meet(trace, [main, end], base=f"{exit_.draft.key}_result", target=target)


def register_handler(trace: Trace, handler: AnyHandler) -> tuple[dict[str, Schema], Schema]:
    """Put a handler into the definition; the schemas of its parameters and its result."""
    known = trace.handlers.setdefault(handler.key, handler)
    if known is not handler:
        raise trace.refuse(
            "HANDLER_TWICE",
            f"two handlers are called {handler.key}: {known.__module__}.{known.__name__} and "
            f"{handler.__module__}.{handler.__name__}",
            "give one of them another name or version",
        )
    found = trace.handler_schemas.get(handler.key)
    if found is None:
        try:
            found = handler.signature.describe(trace.book)
        except BuildError as error:
            trace.problems.extend(error.problems)
            raise
        trace.handler_schemas[handler.key] = found
    return found


def work_policy(trace: Trace, handler: AnyHandler, options: StepOptions, attempts: int) -> dict[str, Json]:
    """What TASK and POLL say about running their handler, defaults written out."""
    attempt = DEFAULTS.attempt_timeout_ms
    if options.attempt_timeout is not None:
        attempt = milliseconds(trace, options.attempt_timeout, "attempt_timeout")
    priority = DEFAULTS.priority if options.priority is None else options.priority
    if not is_whole(priority, 0, 9):
        raise trace.refuse("OPTION", f"priority is {priority!r}", "write a whole number from 0 to 9")
    body: dict[str, Json] = {
        "handler": handler.key,
        "queue": handler.queue,
        "attempt_timeout_ms": attempt,
        "priority": priority,
        "retry": _retry(trace, options.retry or Retry(), attempts),
    }
    if options.title is not None:
        body["title"] = options.title
    if options.start_within is not None:
        body["start_within_ms"] = milliseconds(trace, options.start_within, "start_within")
    for name in ("concurrency_key", "fairness_key"):
        value = getattr(options, name)
        if value is not None:
            body[name] = express(trace, value, Target(str, {"type": "string"}), name)
    if options.review is not None:
        body["review"] = review_guide(trace, options.review)
    return body


def review_guide(trace: Trace, guide: object) -> dict[str, Json]:
    """What a person reads before deciding."""
    if not isinstance(guide, Guide):
        raise trace.refuse("OPTION", f"review is {guide!r}", 'write review=orbit.Guide("…")')
    found: dict[str, Json] = {"guide": guide.guide}
    if guide.url is not None:
        found["url"] = guide.url
    return found


def _retry(trace: Trace, retry: object, attempts: int) -> dict[str, Json]:
    if not isinstance(retry, Retry):
        raise trace.refuse("OPTION", f"retry is {retry!r}", "write retry=orbit.Retry(attempts=…)")
    count = attempts if retry.attempts is None else retry.attempts
    if not is_whole(count, 1):
        raise trace.refuse("OPTION", f"attempts is {count!r}", "write a whole number from 1 on")
    percent = DEFAULTS.backoff_factor_percent if retry.factor is None else round(retry.factor * 100)
    backoff, cap = DEFAULTS.backoff_ms, DEFAULTS.max_backoff_ms
    if retry.backoff is not None:
        backoff = milliseconds(trace, retry.backoff, "backoff")
        cap = max(cap, backoff)
    if retry.max_backoff is not None:
        cap = milliseconds(trace, retry.max_backoff, "max_backoff")
    return {
        "max_attempts": count,
        "backoff_ms": backoff,
        "factor_percent": percent,
        "max_backoff_ms": cap,
        "jitter_percent": DEFAULTS.jitter_percent if retry.jitter_percent is None else retry.jitter_percent,
    }


def _bind(
    trace: Trace, handler: AnyHandler, arguments: Arguments, schemas: Mapping[str, Schema]
) -> dict[str, Expr]:
    """The input of a step: every parameter, plain defaults written out."""
    args, kwargs = arguments
    parameters = handler.signature.parameters
    what = f"{handler.__name__}()"
    positional = [item.name for item in parameters if not item.keyword_only]
    names = [item.name for item in parameters]
    if len(args) > len(positional):
        raise trace.refuse(
            "ARGUMENT",
            f"{what} takes {len(positional)} values, and {len(args)} are given",
            f"give {', '.join(names) or 'nothing'}; the context is not given in a workflow",
        )
    given: dict[str, object] = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name not in names:
            raise trace.refuse(
                "ARGUMENT",
                f"{what} has no parameter {name!r}{near(name, names)}",
                f"give {', '.join(names) or 'nothing'}; policy goes into .options(…)",
            )
        if name in given:
            raise trace.refuse("ARGUMENT", f"{what} is given {name!r} twice", "give it once")
        given[name] = value
    inputs: dict[str, Expr] = {}
    for item in parameters:
        if item.name not in given and item.required:
            raise trace.refuse("ARGUMENT", f"{what} needs {item.name!r}", f"give {item.name}=…")
        target = Target(handler.signature.hints[item.name], schemas[item.name])
        value = given.get(item.name, item.default)
        inputs[item.name] = express(trace, value, target, f"{item.name!r} of {what}")
    return inputs


def _failure(handler: AnyHandler, key: str) -> tuple[Expr, Schema]:
    """The failure of a step: its codes are closed when the handler declares its errors."""
    code: Schema = {"type": "string"}
    if handler.errors:
        codes: list[Json] = sorted({*handler.errors, *OWN_CODES}, key=str)
        code = {"enum": codes}
    names: list[Json] = ["code", "message"]
    properties: dict[str, Json] = {"code": code, "message": {"type": "string"}}
    return {"ref": key, "of": "failure"}, {"type": "object", "properties": properties, "required": names}
