"""The JSON side of a handler: parameters and result, read from the annotations once, on first use."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import typing_extensions
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json, to_jsonable_python

from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.handlers.problems import BuildCode, BuildError, Problem, function_place
from orbit_sdk.handlers.type_fields import MISSING
from orbit_sdk.handlers.type_schemas import Schema, TypeBook, TypeRefused
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.paths import field_path

__all__ = ["Parameter", "Signature", "error_details", "read_parameters"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter after the context; `default` is MISSING when there is none."""

    name: str
    default: Any = MISSING
    keyword_only: bool = False

    @property
    def required(self) -> bool:
        """Whether a caller must give it."""
        return self.default is MISSING


def declaration_error(function: object, code: BuildCode, found: str, instead: str) -> BuildError:
    """A refusal that points at the declaration itself."""
    return BuildError([Problem(code, found, instead, function_place(function))])


_EMPTY = inspect.Parameter.empty
_KINDS = inspect.Parameter
_SHAPE: BuildCode = "HANDLER_SHAPE"


def read_parameters(function: Callable[..., Any], what: str) -> tuple[Parameter, ...]:
    """The parameters after the context. Refuses what a task cannot carry; resolves no annotation yet."""
    problem = _wrong_shape(function, what)
    if problem is not None:
        raise declaration_error(function, *problem)
    return tuple(
        Parameter(
            item.name,
            MISSING if item.default is _EMPTY else item.default,
            item.kind is _KINDS.KEYWORD_ONLY,
        )
        for item in list(inspect.signature(function).parameters.values())[1:]
    )


def _wrong_shape(function: Callable[..., Any], what: str) -> tuple[BuildCode, str, str] | None:
    """Code, what was found, what to write; None when all is well."""
    if not inspect.isfunction(function):
        return _SHAPE, f"{what} is not a plain function", "decorate a module-level `def` or `async def`"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return _SHAPE, f"{what} is a generator", "return one value; report progress with `ctx.heartbeat`"
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        return _SHAPE, f"{what} is a method", "write a plain function; a task cannot carry the object"
    if not parameters or parameters[0].kind not in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD):
        return _SHAPE, f"{what} takes no context", "make `ctx: orbit.TaskContext` its first parameter"
    for item in parameters[1:]:
        if item.kind in (_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD):
            return _SHAPE, f"{what} takes *{item.name}", "name and annotate every parameter"
        if item.kind is _KINDS.POSITIONAL_ONLY:
            return _SHAPE, f"{item.name!r} of {what} has no name in JSON", "drop the `/`"
        if item.annotation is _EMPTY:
            return (
                "MISSING_ANNOTATION",
                f"{item.name!r} of {what} has no type",
                f"write `{item.name}: <type>`",
            )
    if signature.return_annotation is inspect.Signature.empty:
        return "MISSING_ANNOTATION", f"{what} has no result type", "write `-> <type>`, or `-> None`"
    return None


class Signature:
    """Parameters and result of one function as JSON. Everything is built on first use and kept."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self.what = what
        self.parameters = read_parameters(function, what)
        self._function = function

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The resolved annotations, `return` included."""
        try:
            return typing.get_type_hints(self._function, include_extras=True)
        except NameError as error:
            raise declaration_error(
                self._function,
                "UNKNOWN_NAME",
                f"an annotation of {self.what} cannot be resolved ({error})",
                "define its types at the top level of a module, and import them outside `if TYPE_CHECKING`",
            ) from None

    @cached_property
    def _arguments(self) -> TypeAdapter[dict[str, Any]]:
        fields = {
            item.name: self.hints[item.name]
            if item.required
            else typing_extensions.NotRequired[self.hints[item.name]]
            for item in self.parameters
        }
        make: Any = typing_extensions.TypedDict
        record = make("Parameters", fields)
        record.__pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
        return TypeAdapter(record)

    @cached_property
    def result_adapter(self) -> TypeAdapter[Any]:
        """The pydantic adapter of the result."""
        return TypeAdapter(self.hints["return"])

    def adapter(self, name: str) -> TypeAdapter[Any]:
        """The pydantic adapter of one parameter."""
        found = self._adapters.get(name)
        if found is None:
            found = self._adapters[name] = TypeAdapter(self.hints[name])
        return found

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {}

    def parse_parameters(self, value: Json) -> dict[str, Any]:
        """Keyword arguments from JSON, defaults filled in. Raises InvalidArgument with a path per problem."""
        try:
            given = self._arguments.validate_json(to_json(value), strict=True)
        except ValidationError as error:
            raise InvalidArgument(f"the parameters do not fit {self.what}", error_details(error)) from None
        for item in self.parameters:
            if item.name not in given:
                given[item.name] = copy.deepcopy(item.default)
        return given

    def dump_parameters(self, given: Mapping[str, Any]) -> dict[str, Json]:
        """The JSON of keyword arguments. Raises InvalidArgument when one is unknown, missing or ill-typed."""
        # The adapter leaves out what it does not know.
        unknown = sorted(set(given) - {item.name for item in self.parameters})
        if unknown:
            found = [Detail(name, f"is no parameter of {self.what}") for name in unknown]
            raise InvalidArgument(f"the parameters do not fit {self.what}", found)
        return cast(
            "dict[str, Json]", dump_checked(self._arguments, dict(given), f"the parameters of {self.what}")
        )

    def dump_result(self, value: object) -> Json:
        """The JSON of a result. Raises InvalidArgument when the value is not of the declared type."""
        return dump_checked(self.result_adapter, value, f"the result of {self.what}")

    def parse_result(self, value: Json) -> Any:
        """A result from its JSON."""
        try:
            return self.result_adapter.validate_json(to_json(value), strict=True)
        except ValidationError as error:
            raise InvalidArgument(f"this is no result of {self.what}", error_details(error)) from None

    def describe(self, book: TypeBook) -> tuple[dict[str, Schema], Schema]:
        """The schemas of parameters and result; named types go into `book`. Raises BuildError."""
        try:
            parameters = {
                item.name: book.schema(self.hints[item.name], item.name) for item in self.parameters
            }
            return parameters, book.schema(self.hints["return"], "the result")
        except TypeRefused as refused:
            raise declaration_error(
                self._function, "TYPE", f"{refused.where} of {self.what}: {refused.found}", refused.instead
            ) from None

    @cached_property
    def types_digest(self) -> str:
        """A digest of everything a caller can see of the types."""
        book = TypeBook()
        parameters, result = self.describe(book)
        required: list[Json] = [item.name for item in self.parameters if item.required]
        return digest(
            {
                "parameters": dict(parameters),
                "required": sorted(required, key=str),
                "result": result,
                "types": dict(book.types),
            }
        )


def dump_checked(adapter: TypeAdapter[Any], value: object, what: str) -> Json:
    """The JSON of a value after it was judged by its own declared type."""
    try:
        text = adapter.dump_json(value, warnings="error")
        adapter.validate_json(text, strict=True)
        return to_jsonable_python(adapter.dump_python(value, mode="json", warnings="error"))  # type: ignore[no-any-return]
    except ValidationError as error:
        raise InvalidArgument(f"{what} is not of its declared type", error_details(error)) from None
    except Exception as error:  # pydantic's serializer raises several families of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidArgument(f"{what} is not of its declared type: {reason}") from error


def error_details(error: ValidationError) -> list[Detail]:
    """Pydantic's findings as field and reason, without the values (they may be sensitive)."""
    return [
        Detail(field_path(item["loc"]), str(item["msg"]))
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ]
