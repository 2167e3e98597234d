"""Running an arm, and what is left where arms meet."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orbit_sdk.builder.endless import INSTEAD_OF_LOOPS, turning_here
from orbit_sdk.builder.express import Target, express, express_freely
from orbit_sdk.builder.foreign import explained
from orbit_sdk.builder.graph import ArmFailed, Expr, OpenExit, Scope
from orbit_sdk.builder.refs import Condition, Ref, RefData, ref_data
from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.problems import BuildError
from orbit_sdk.handlers.type_schemas import Schema, union

__all__ = ["End", "check_arm", "lift", "meet", "run_arm"]


_MOST_NESTED = 64
"""Far above what a definition may nest, and far below what Python's own stack allows."""


@dataclass(frozen=True, slots=True)
class End:
    """How an arm ended: what it returned, and which of its exits are open (none: it failed on every way)."""

    value: Any
    open: list[OpenExit]
    scope: Scope | None = None


def check_arm(trace: Trace, arm: object, what: str) -> None:
    """An arm is a function without parameters, not a value that was made already."""
    if isinstance(arm, Ref | Condition):
        raise trace.refuse(
            "EAGER_ARM",
            f"{what} is given {arm!r}: its steps were declared before the branch, on every way",
            "wrap the call: lambda: handler(…)",
        )
    if not callable(arm):
        raise trace.refuse("EAGER_ARM", f"{what} is given {arm!r}", "give it a function: lambda: …")
    if isinstance(arm, Handler):
        raise trace.refuse(
            "FORGOTTEN_CALL", f"{what} is given the handler {arm.key}", f"write lambda: {arm.__name__}(…)"
        )


def run_arm(trace: Trace, scope: Scope, arm: Any, args: tuple[object, ...] = ()) -> End:
    """Run an arm's function in its own scope."""
    check_arm(trace, arm, scope.name)
    if scope.depth > _MOST_NESTED:
        raise trace.refuse(
            "ENDLESS",
            f"arms lie more than {_MOST_NESTED} deep in each other{turning_here()}",
            INSTEAD_OF_LOOPS,
        )
    outer, trace.scope = trace.scope, scope
    try:
        value = arm(*args)
        _refuse_unfinished(trace, scope, value)
    except ArmFailed:
        return End(None, [], scope)
    except BuildError:
        raise
    except BaseException as error:
        misuse = explained(trace, error)
        if misuse is not None:
            raise misuse from error
        trace.refuse(
            "ARM_RAISED",
            f"{scope.name} raised {type(error).__name__}: {error}, so it is only half declared",
            "let the error end the build, or fix it",
        )
        raise
    finally:
        trace.scope = outer
    return End(value, scope.open, scope)


def _refuse_unfinished(trace: Trace, scope: Scope, value: object) -> None:
    if inspect.iscoroutine(value):
        value.close()
        raise trace.refuse("ASYNC", f"{scope.name} is an async function", "write a plain `def` or a lambda")
    if inspect.isgenerator(value):
        raise trace.refuse("GENERATOR", f"{scope.name} is a generator", "write a plain `def` or a lambda")


def meet(trace: Trace, ends: Sequence[End], *, base: str, target: Target | None = None) -> Any:
    """Let exclusive arms meet: their open exits stay open together; a MERGE when they leave a value.

    A MERGE is called `base` where `target` says what it must hold, else after the type that it holds.

    The MERGE is dropped again when nobody uses its value.
    """
    alive = [end for end in ends if end.open]
    if not alive:
        trace.scope.open = []
        raise ArmFailed
    trace.scope.open = [item for end in alive for item in end.open]
    if all(end.value is None for end in alive) and (target is None or target.schema == {"type": "null"}):
        return None
    if len(alive) == 1:
        return lift(trace, alive[0], target)
    unusable = next((found for end in alive if (found := _unusable(end.value)) is not None), None)
    if unusable is not None:
        return Ref(RefData(trace, {"const": None}, {}, trace.scope, None, unusable))
    return _merge(trace, alive, base, target)


def _merge(trace: Trace, alive: Sequence[End], base: str, target: Target | None) -> Any:
    schemas: list[Schema] = []
    inputs: list[tuple[OpenExit, Expr]] = []
    for end in alive:
        expr, schema = _leave(trace, end, target)
        schemas.append(schema)
        inputs.extend((item, expr) for item in end.open)
    result = target.schema if target is not None else union(schemas)
    name = result.get("$ref")
    if target is None and isinstance(name, str):
        base = name.removeprefix("#/types/")
    key = trace.make_key(None, base)
    draft = trace.add("MERGE", key, {"result": result})
    draft.inputs = inputs
    return trace.ref({"ref": key}, result)


def lift(trace: Trace, end: End, target: Target | None = None) -> Any:
    """What an arm returned, usable where its surroundings go on. Tuples are lifted item by item."""
    if isinstance(end.value, tuple):
        return tuple(lift(trace, End(item, end.open, end.scope)) for item in end.value)
    if end.value is None and target is None:
        return None
    expr, schema = _leave(trace, end, target)
    signal = ref_data(end.value).signal if isinstance(end.value, Ref) else None
    return Ref(RefData(trace, expr, schema, trace.scope, signal))


def _leave(trace: Trace, end: End, target: Target | None) -> tuple[Expr, Schema]:
    """The value that an arm leaves, judged inside the arm."""
    outer = trace.scope
    where = f"what {end.scope.name} returns" if end.scope is not None else "the value"
    if end.scope is not None:
        trace.scope = end.scope
    try:
        if target is None:
            return express_freely(trace, end.value, where)
        return express(trace, end.value, target, where), target.schema
    finally:
        trace.scope = outer


def _unusable(value: object) -> tuple[str, str] | None:
    if isinstance(value, tuple):
        return (
            "the arms return tuples, which have no value of their own where the arms meet",
            "return one value: put the parts into a model with orbit.build",
        )
    return None
