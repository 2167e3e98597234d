"""Older versions that a handler accepts: handlers of their own, whose parameters are upgraded first.

They exist on workers only. A workflow that calls the new handler knows nothing of them.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any

from orbit_sdk.handlers.context import TaskContext
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.problems import BuildError, Problem, function_place

__all__ = ["older_handlers"]

AnyHandler = Handler[..., Any]
Upgrade = Callable[..., Mapping[str, object]]


def older_handlers(handler: AnyHandler) -> list[AnyHandler]:
    """One per accepted version, the oldest first. Raises BuildError where an upgrade shows no types."""
    return [_older(handler, version, handler.older[version]) for version in sorted(handler.older)]


def _older(handler: AnyHandler, version: int, upgrade: Upgrade) -> AnyHandler:
    try:
        made: AnyHandler = Handler(
            _behind(handler, handler.function, upgrade),
            name=handler.name,
            version=version,
            queue=handler.queue,
            recovery=handler.recovery,
            errors=handler.errors,
            run_in=handler.run_in,
            progress_timeout=handler.progress_timeout,
        )
        if handler.verify_function is not None:
            made.verify(_behind(handler, handler.verify_function, upgrade))
    except BuildError as error:
        place = function_place(upgrade)
        raise BuildError(
            [Problem(one.code, one.found, one.instead, place) for one in error.problems]
        ) from None
    return made


def _behind(handler: AnyHandler, function: Callable[..., Any], upgrade: Upgrade) -> Callable[..., Any]:
    """A function with the parameters of `upgrade` and the result of `function`."""
    run: Any
    if inspect.iscoroutinefunction(function):

        async def run_later(ctx: TaskContext, **given: Any) -> Any:
            return await function(ctx, **upgrade(**given))

        run = run_later
    else:

        def run_here(ctx: TaskContext, **given: Any) -> Any:
            return function(ctx, **upgrade(**given))

        run = run_here
    own = inspect.signature(upgrade)
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=TaskContext)
    result = typing.get_type_hints(function, include_extras=True)["return"]
    hints = typing.get_type_hints(upgrade, include_extras=True)
    run.__signature__ = own.replace(parameters=[context, *own.parameters.values()], return_annotation=result)
    run.__annotations__ = {**hints, "ctx": TaskContext, "return": result}
    run.__name__ = handler.__name__
    run.__module__ = handler.__module__
    return typing.cast("Callable[..., Any]", run)
