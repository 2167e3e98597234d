"""`@contract`: a handler's signature without its body, for those who must not import business code.

Callers, workflows and CI import the contract. The worker package imports it too, and gives it a body with
`@contract.implement`. Names are compared when the body is given; types when a worker takes the handler, so
that importing stays inert.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Concatenate, Protocol, cast, overload

from typing_extensions import ParamSpec, TypeVar

from orbit_sdk.handlers.context import TaskContext
from orbit_sdk.handlers.declaration import Handler, RunIn, checked_progress_timeout, declared_wrongly
from orbit_sdk.handlers.problems import BuildError, Place, Problem, caller_place, function_place
from orbit_sdk.handlers.recovery import Recovery
from orbit_sdk.handlers.signature import Signature, declaration_error
from orbit_sdk.handlers.type_fields import MISSING
from orbit_sdk.handlers.type_schemas import Schema, TypeBook
from orbit_sdk.handlers.verdicts import CannotHappenAnyMore, CannotTell, Happened
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

__all__ = ["Contract", "contract"]

P = ParamSpec("P")
R = TypeVar("R")


class Implement(Protocol[P, R]):
    """Takes the body of a contract, `async def` or `def`."""

    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], Awaitable[R]], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> Handler[P, R]: ...


class Contract(Handler[P, R]):
    """A handler whose body is written elsewhere. In a workflow it is called like every other handler."""

    def __init__(self, function: Callable[..., Any], *, promises_verify: bool, **declared: Any) -> None:
        super().__init__(function, **declared)
        self.promises_verify = promises_verify
        self._body: Signature | None = None

    @property
    def can_verify(self) -> bool:
        """Whether the contract promises a verify function."""
        return self.promises_verify

    @property
    def is_implemented(self) -> bool:
        """Whether a body was given in this process."""
        return self._body is not None

    @overload
    def implement(
        self, function: Callable[Concatenate[TaskContext, P], Awaitable[R]], /
    ) -> Handler[P, R]: ...
    @overload
    def implement(self, function: Callable[Concatenate[TaskContext, P], R], /) -> Handler[P, R]: ...
    @overload
    def implement(
        self, *, run_in: RunIn = "thread", progress_timeout: timedelta | None = None
    ) -> Implement[P, R]: ...
    def implement(
        self, function: Any = None, *, run_in: RunIn = "thread", progress_timeout: timedelta | None = None
    ) -> Any:
        """Give the contract its body: the same parameters by name, the same types.

        Args:
            function: the body; left out when the decorator is called with options.
            run_in: where a `def` body runs.
            progress_timeout: as of `handler`.

        Raises:
            BuildError: the parameters differ, or there is a body already.
        """

        def give(body: Callable[..., Any]) -> Handler[..., Any]:
            if self._body is not None:
                raise declaration_error(
                    body, "CONTRACT", f"the contract {self.key} already has a body", "keep one of them"
                )
            signature = Signature(body, f"the body of {self.key}")
            problems = self._names(signature, function_place(body))
            if problems:
                raise BuildError(problems)
            self.function = body
            self.run_in = run_in
            self.progress_timeout = checked_progress_timeout(progress_timeout, self.key)
            self._body = signature
            # A child process finds a handler by the module that gives it its body.
            self.__module__ = body.__module__
            return self

        return give if function is None else give(function)

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
        """Give the verify function that the contract promises."""
        if not self.promises_verify:
            raise declaration_error(
                function,
                "CONTRACT",
                f"the contract {self.key} promises no verify function, so no definition knows of one",
                "declare the contract with verify=True",
            )
        return super().verify(function)

    async def run(self, ctx: TaskContext, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the body here. Raises BuildError when none was given."""
        if self._body is None:
            raise BuildError([self._without_body()])
        return await super().run(ctx, *args, **kwargs)

    def check_runnable(self) -> None:
        """Refuse a contract that this process cannot keep. Raises BuildError with every difference."""
        if self._body is None:
            raise BuildError([self._without_body()])
        place = function_place(self.function)
        problems = self._types(self._body, place)
        if self.promises_verify and self.verify_function is None:
            problems.append(
                Problem(
                    "CONTRACT",
                    f"the contract {self.key} promises a verify function, and none was given",
                    f"write one: @{self.__name__}.verify",
                    place,
                )
            )
        if problems:
            raise BuildError(problems)

    def _without_body(self) -> Problem:
        return Problem(
            "CONTRACT",
            f"the contract {self.key} has no body in this process",
            f"import the module that says @{self.__name__}.implement",
            caller_place(),
        )

    def _names(self, body: Signature, place: Place | None) -> list[Problem]:
        """Differences that can be seen without looking at a type."""
        mine = {item.name: item for item in self.signature.parameters}
        theirs = {item.name: item for item in body.parameters}
        found = [f"it does not take {name!r}" for name in mine if name not in theirs]
        found += [
            f"it takes {name!r}, which the contract does not have" for name in theirs if name not in mine
        ]
        for name in mine.keys() & theirs.keys():
            default = theirs[name].default
            if default is not MISSING and not _equal(default, mine[name].default):
                said = "none" if mine[name].default is MISSING else repr(mine[name].default)
                found.append(f"the default of {name!r} is {default!r}, in the contract {said}")
        return [self._differs(one, place) for one in sorted(found)]

    def _types(self, body: Signature, place: Place | None) -> list[Problem]:
        """Differences of the JSON types."""
        mine, theirs = _described(self.signature), _described(body)
        found = [
            f"{_part(name)} is {theirs[name][0]}, in the contract {mine[name][0]}"
            for name in mine
            if name in theirs and mine[name][1] != theirs[name][1]
        ]
        return [self._differs(one, place) for one in found]

    def _differs(self, found: str, place: Place | None) -> Problem:
        instead = "write the parameters and types of the contract, or declare another version of it"
        return Problem("CONTRACT", f"the body of {self.key} differs: {found}", instead, place)

    def __repr__(self) -> str:
        state = "" if self.is_implemented else ", no body here"
        return f"<contract {self.key} {self.recovery}{state}>"


class ContractDecorator(Protocol):
    """Takes signatures written as `async def` and as `def` alike."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext, P], Awaitable[R]], /
    ) -> Contract[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[TaskContext, P], R], /) -> Contract[P, R]: ...


def contract(
    name: str,
    *,
    version: int,
    queue: str = "default",
    recovery: Recovery = Recovery.CONSERVATIVE,
    errors: tuple[str, ...] = (),
    verify: bool | None = None,
) -> ContractDecorator:
    """Declare the handler `name` in `version` by its signature; the function's own body is never run.

    Type checkers want one all the same: write `raise NotImplementedError`.

    `verify` says whether the body comes with a verify function; by default a VERIFIABLE one does. The other
    options are those of `handler`.
    """
    problem = declared_wrongly(name, version, queue, errors)
    if problem is not None:
        raise BuildError([Problem(problem[0], problem[1], problem[2], caller_place())])
    level = Recovery(recovery)
    promised = level is Recovery.VERIFIABLE if verify is None else verify
    if promised and level not in (Recovery.VERIFIABLE, Recovery.MARKED):
        found = f"{name} is {level}, which never verifies"
        instead = "declare recovery=orbit.Recovery.VERIFIABLE (or MARKED)"
        raise BuildError([Problem("VERIFY_SHAPE", found, instead, caller_place())])

    def declare(function: Callable[..., Any]) -> Contract[..., Any]:
        return Contract(
            function,
            promises_verify=promised,
            name=name,
            version=version,
            queue=queue,
            recovery=level,
            errors=tuple(errors),
            run_in="thread",
        )

    return cast(ContractDecorator, declare)


def _described(signature: Signature) -> Mapping[str, tuple[str, str]]:
    """Each parameter, and `return`: how its type is called, and everything JSON can see of it."""
    book = TypeBook()
    parameters, result = signature.describe(book)
    return {
        name: (_called(schema), _whole(schema, book.types))
        for name, schema in {**parameters, "return": result}.items()
    }


def _whole(schema: Schema, types: Mapping[str, Schema]) -> str:
    """A type with every named type that it reaches."""
    reached: dict[str, Json] = {}
    waiting: list[Json] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            ref = one.get("$ref")
            name = ref.removeprefix("#/types/") if isinstance(ref, str) else None
            if name is not None and name in types and name not in reached:
                reached[name] = types[name]
                waiting.append(types[name])
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return canonical_json([schema, reached])


def _called(schema: Schema) -> str:
    ref = schema.get("$ref")
    return ref.removeprefix("#/types/") if isinstance(ref, str) else canonical_json(schema)


def _part(name: str) -> str:
    return "the result" if name == "return" else repr(name)


def _equal(left: object, right: object) -> bool:
    return type(left) is type(right) and bool(left == right)
