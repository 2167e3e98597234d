"""`@handler`: a function that workers run, with what Orbit must know to run it safely.

A declaration is inert: importing a module with handlers opens nothing and builds no adapter.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, Concatenate, Generic, Literal, Protocol, cast, overload

from typing_extensions import ParamSpec, TypeVar

from orbit_sdk.handlers.context import TaskContext
from orbit_sdk.handlers.options import Failure, FailurePolicy, Guide, Retry, StepOptions
from orbit_sdk.handlers.problems import BuildCode, BuildError, Problem, caller_place
from orbit_sdk.handlers.recording import RECORDER
from orbit_sdk.handlers.recovery import Recovery
from orbit_sdk.handlers.signature import Signature, declaration_error
from orbit_sdk.handlers.type_schemas import Schema, TypeBook
from orbit_sdk.handlers.verdicts import CannotHappenAnyMore, CannotTell, Happened, Verdict
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import handler_key, is_error_code, is_name, is_queue_name

__all__ = ["Handler", "RunIn", "declared_wrongly", "handler"]

P = ParamSpec("P")
R = TypeVar("R")

RunIn = Literal["thread", "process"]
"""Where a `def` handler runs; `async def` handlers run on the worker's loop."""

VerifyFunction = Callable[..., Awaitable[Verdict[Any]] | Verdict[Any]]


class Handler(Generic[P, R]):
    """A declared handler: the function, its JSON types, and what may be repeated.

    Inside a workflow function a call declares a step. Everywhere else use `run`.
    """

    def __init__(  # noqa: PLR0913 - one keyword per thing declared
        self,
        function: Callable[..., Any],
        *,
        name: str,
        version: int,
        queue: str,
        recovery: Recovery,
        errors: tuple[str, ...],
        run_in: RunIn,
        progress_timeout: timedelta | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.version = version
        self.queue = queue
        self.recovery = recovery
        self.errors = errors
        self.run_in: RunIn = run_in
        self.progress_timeout = checked_progress_timeout(progress_timeout, self.key)
        self.verify_function: VerifyFunction | None = None
        self.older: dict[int, Callable[..., Mapping[str, object]]] = {}
        self.signature = Signature(function, f"handler {self.key}")
        self.__name__ = getattr(function, "__name__", name)
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    @property
    def key(self) -> str:
        """`job.submit@1`."""
        return handler_key(self.name, self.version)

    @property
    def is_async(self) -> bool:
        """Whether the function is `async def`."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def can_verify(self) -> bool:
        """Whether a verify function is declared."""
        return self.verify_function is not None

    @property
    def is_implemented(self) -> bool:
        """Whether this process knows a body to run; only a contract may be without one."""
        return True

    def check_runnable(self) -> None:
        """Refuse what a worker cannot run. Raises BuildError."""

    # In a workflow.

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Declare a step of the workflow being built; the value stands for the step's result."""
        return cast(R, _declare(self, args, kwargs, StepOptions()))

    def options(  # noqa: PLR0913 - the vocabulary of a step's policy
        self,
        *,
        key: str | None = None,
        title: str | None = None,
        attempt_timeout: timedelta | None = None,
        total_timeout: timedelta | None = None,
        start_within: timedelta | None = None,
        retry: Retry | None = None,
        priority: int | None = None,
        concurrency_key: str | None = None,
        fairness_key: str | None = None,
        on_failure: FailurePolicy | Callable[[Failure], R] | None = None,
        review: Guide | None = None,
    ) -> Callable[P, R]:
        """The same step with its own policy: `submit.options(priority=7)(path)`."""
        chosen = StepOptions(
            key=key,
            title=title,
            attempt_timeout=attempt_timeout,
            total_timeout=total_timeout,
            start_within=start_within,
            retry=retry,
            priority=priority,
            concurrency_key=concurrency_key,
            fairness_key=fairness_key,
            on_failure=on_failure,
            review=review,
        )

        def declare(*args: P.args, **kwargs: P.kwargs) -> R:
            return cast(R, _declare(self, args, kwargs, chosen))

        return declare

    # On a worker, and in unit tests.

    async def run(self, ctx: TaskContext, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here, on this thread, with Python values. No server and no adapter takes part."""
        answer: Any = self.function(ctx, *args, **kwargs)
        return cast(R, await answer if inspect.isawaitable(answer) else answer)

    async def run_verify(self, ctx: TaskContext, *args: P.args, **kwargs: P.kwargs) -> Verdict[R]:
        """Run the verify function here. TypeError when none is declared or it answers something else."""
        if self.verify_function is None:
            raise TypeError(f"handler {self.key} has no verify function")
        answer = self.verify_function(ctx, *args, **kwargs)
        verdict: object = await answer if inspect.isawaitable(answer) else answer
        if not _is_verdict(verdict):
            raise TypeError(
                f"the verify function of {self.key} answered {type(verdict).__name__}, not a verdict"
            )
        return cast(Verdict[R], verdict)

    def verify(
        self,
        function: Callable[
            Concatenate[TaskContext, ...],
            Awaitable[Happened[R] | CannotHappenAnyMore | CannotTell]
            | Happened[R]
            | CannotHappenAnyMore
            | CannotTell,
        ],
    ) -> Callable[Concatenate[TaskContext, ...], Any]:
        """Declare how to find out whether the effect happened. Takes the handler's parameters by name."""
        own = Signature(function, f"the verify function of {self.key}")
        mine = [item.name for item in self.signature.parameters]
        theirs = [item.name for item in own.parameters]
        if sorted(mine) != sorted(theirs):
            raise declaration_error(
                function,
                "VERIFY_SHAPE",
                f"the verify function takes {theirs}, the handler {self.key} takes {mine}",
                "give it exactly the handler's parameters",
            )
        if self.verify_function is not None:
            raise declaration_error(
                function, "VERIFY_SHAPE", f"{self.key} already has a verify function", "keep one of them"
            )
        if self.recovery not in (Recovery.VERIFIABLE, Recovery.MARKED):
            raise declaration_error(
                function,
                "VERIFY_SHAPE",
                f"{self.key} is {self.recovery}, which never verifies",
                "declare recovery=orbit.Recovery.VERIFIABLE (or MARKED)",
            )
        self.verify_function = function
        return function

    def accepts(self, version: int, *, upgrade: Callable[..., Mapping[str, object]]) -> None:
        """Let workers run tasks of an older version of this handler, too.

        Args:
            version: the older version; its result had the type that this handler's has.
            upgrade: a function with the parameters (and types) of the older version that gives those of
                this one, by name.
        """
        if isinstance(version, bool) or not 1 <= version < self.version or version in self.older:
            raise declaration_error(
                upgrade,
                "VERSION",
                f"{self.key} cannot accept version {version!r}",
                f"name each older version once: from 1 to {self.version - 1}",
            )
        self.older[version] = upgrade

    # The JSON side.

    def parse_parameters(self, value: Json) -> dict[str, Any]:
        """Keyword arguments from JSON, defaults filled in. Raises InvalidArgument with a path per problem."""
        return self.signature.parse_parameters(value)

    def dump_parameters(self, given: Mapping[str, Any]) -> dict[str, Json]:
        """The JSON of keyword arguments, as a submission carries it. Raises InvalidArgument."""
        return self.signature.dump_parameters(given)

    def dump_result(self, value: object) -> Json:
        """The JSON of a result. Raises InvalidArgument when the value is not of the declared type."""
        return self.signature.dump_result(value)

    def parse_result(self, value: Json) -> R:
        """A result from its JSON."""
        return cast(R, self.signature.parse_result(value))

    @cached_property
    def _described(self) -> tuple[dict[str, Schema], Schema, dict[str, Schema]]:
        book = TypeBook()
        parameters, result = self.signature.describe(book)
        return parameters, result, book.types

    @property
    def parameters_schema(self) -> dict[str, Schema]:
        """The type of each parameter, in Orbit's normal form; `$ref` points into `types`."""
        return self._described[0]

    @property
    def result_schema(self) -> Schema:
        """The type of the result, in Orbit's normal form; `$ref` points into `types`."""
        return self._described[1]

    @property
    def types(self) -> dict[str, Schema]:
        """The named types that parameters and result use."""
        return self._described[2]

    def types_digest(self) -> str:
        """SHA-256 over parameter and result types: one version of a handler has one digest everywhere."""
        return self.signature.types_digest

    def __repr__(self) -> str:
        return f"<handler {self.key} {self.recovery}>"


class HandlerDecorator(Protocol):
    """Takes `async def` and `def` functions alike."""

    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], Awaitable[R]], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> Handler[P, R]: ...


def handler(  # noqa: PLR0913 - one keyword per thing declared
    name: str,
    *,
    version: int,
    queue: str = "default",
    recovery: Recovery = Recovery.CONSERVATIVE,
    errors: tuple[str, ...] = (),
    run_in: RunIn = "thread",
    progress_timeout: timedelta | None = None,
) -> HandlerDecorator:
    """Declare a function as the handler `name` in `version`.

    `errors` is the closed list of codes that `Final` may carry; `run_in` says where a `def` handler runs. An
    attempt that does not call `ctx.heartbeat` for `progress_timeout` (1 second to 24 hours) is over, as if
    its time were.
    """
    problem = declared_wrongly(name, version, queue, errors)
    if problem is not None:
        raise BuildError([Problem(problem[0], problem[1], problem[2], caller_place())])
    level = Recovery(recovery)

    def declare(function: Callable[..., Any]) -> Handler[..., Any]:
        return Handler(
            function,
            name=name,
            version=version,
            queue=queue,
            recovery=level,
            errors=tuple(errors),
            run_in=run_in,
            progress_timeout=progress_timeout,
        )

    return cast(HandlerDecorator, declare)


def checked_progress_timeout(value: object, key: str) -> timedelta | None:
    """Raises BuildError for what is no duration, or one that cannot be kept."""
    if value is None or (isinstance(value, timedelta) and timedelta(seconds=1) <= value <= timedelta(days=1)):
        return value
    found = f"the progress_timeout of {key} is {value!r}"
    instead = "write a timedelta from 1 second to 24 hours: progress_timeout=timedelta(minutes=2)"
    raise BuildError([Problem("DURATION", found, instead, caller_place())])


def _is_verdict(value: object) -> bool:
    return isinstance(value, Happened | CannotHappenAnyMore | CannotTell)


def declared_wrongly(
    name: object, version: object, queue: object, errors: object
) -> tuple[BuildCode, str, str] | None:
    """Code, what was found, what to write; None when all is well."""
    if not isinstance(name, str) or not is_name(name):
        return (
            "NAME",
            f"{name!r} is not a handler name",
            'write words joined by dots: "job.submit"',
        )
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        return "VERSION", f"the version of {name} is {version!r}", "write a whole number from 1 on"
    if not isinstance(queue, str) or not is_queue_name(queue):
        return "NAME", f"{queue!r} is not a queue name", 'write a lower-case name: queue="jobs"'
    if isinstance(errors, str) or not isinstance(errors, tuple | list):
        return "ERRORS", f"errors is {errors!r}", 'write a tuple: errors=("NO_FUNDS",)'
    for code in errors:
        if not isinstance(code, str) or not is_error_code(code):
            return "ERRORS", f"{code!r} is not an error code", "write capitals, digits and _: NO_FUNDS"
    if len(set(errors)) != len(errors):
        return "ERRORS", f"errors of {name} names a code twice", "name each code once"
    return None


def _declare(handler: Handler[..., Any], args: Any, kwargs: Any, options: StepOptions) -> Any:
    recorder = RECORDER.get()
    if recorder is None:
        raise BuildError(
            [
                Problem(
                    "OUTSIDE_WORKFLOW",
                    f"{handler.key} was called outside a workflow function, where a call declares nothing",
                    "call it inside a function decorated with @orbit.workflow, or run its body: "
                    f"`await {handler.__name__}.run(ctx, …)`",
                    caller_place(),
                )
            ]
        )
    return recorder.step(handler, args, kwargs, options)
