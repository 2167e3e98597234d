"""`@workflow`: a typed function that is run once, at definition time, and leaves a definition."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json
from typing_extensions import TypeVar

from orbit_sdk.builder.conditions import compare, join
from orbit_sdk.builder.emit import WHOLE, document_parts, source_places
from orbit_sdk.builder.express import Target, express
from orbit_sdk.builder.foreign import explained
from orbit_sdk.builder.graph import ArmFailed
from orbit_sdk.builder.notebook import problems_html, svg_of
from orbit_sdk.builder.scan import scan
from orbit_sdk.builder.steps import declare_step
from orbit_sdk.builder.trace import Language, Trace
from orbit_sdk.builder.verdict import judge, own_warnings
from orbit_sdk.builder.words import WORDS
from orbit_sdk.check.diagnostics import Diagnostic, Place, order_of
from orbit_sdk.definition.models import Definition, definition_digest, load_definition
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers.options import FailurePolicy
from orbit_sdk.handlers.problems import (
    BuildCode,
    BuildError,
    Problem,
    caller_place,
    function_place,
)
from orbit_sdk.handlers.recording import RECORDER
from orbit_sdk.handlers.signature import dump_checked, error_details
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import is_name

__all__ = ["Compiled", "Workflow", "workflow"]

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a workflow compiles to.

    `side` says where each part was written, by JSON path; `warnings` are findings that forbid nothing.
    """

    definition: Definition
    digest: str
    side: Mapping[str, Place]
    warnings: tuple[Diagnostic, ...] = ()

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return svg_of(self.definition)


_LANGUAGE = Language(declare_step, compare, join)


class Workflow(Generic[In, Out]):
    """A declared workflow. Nothing is compiled, and no type is looked at, before it is asked for."""

    def __init__(self, function: Callable[[In], Out], *, id: str, version: int, meta: _Meta) -> None:  # noqa: A002
        self.function = function
        self.id = id
        self.version = version
        self.title = meta.title
        self.description = meta.description
        self.on_failure = meta.on_failure
        self.__name__ = getattr(function, "__name__", id)
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def compile(self) -> Compiled:
        """Run the function once and check what came out. Raises BuildError with every misuse."""
        trace = Trace(self.id, self.on_failure, _LANGUAGE)
        parts = self._record(trace)
        document: dict[str, Json] = {"schema_version": 1, "id": self.id, "version": self.version, **parts}
        for name in ("title", "description"):
            value = getattr(self, name)
            if value is not None:
                document[name] = value
        side = source_places(trace, self.function)
        definition = _loaded(document, side)
        warnings = (*judge(definition, side), *own_warnings(trace))
        return Compiled(
            definition, definition_digest(definition), side, tuple(sorted(warnings, key=order_of))
        )

    def _record(self, trace: Trace) -> dict[str, Json]:
        hints = self._hints
        outer = RECORDER.get()
        if outer is not None:
            raise outer.refuse(
                "NESTED", f"{self.id} is compiled inside a workflow function", _INSTEAD_OF_NESTING
            )
        silent = scan(self.function, WORDS)  # before the recorder: asking for a name is not yet using it
        token = RECORDER.set(trace)
        try:
            expected = self._types(trace, hints)
            trace.problems.extend(silent)
            self._run(trace, expected)
        except BuildError as error:
            raise BuildError(_all_problems(trace, error)) from error
        finally:
            trace.closed = True
            RECORDER.reset(token)
        if trace.problems:
            raise BuildError(_once(trace.problems))
        return {**document_parts(trace), "input": expected[0].schema, "output": expected[1].schema}

    def _types(self, trace: Trace, hints: tuple[Any, Any]) -> tuple[Target, Target]:
        try:
            given = Target(hints[0], trace.schema(hints[0], "the input"))
            left = Target(hints[1], trace.schema(hints[1], "the output"))
        except BuildError as error:
            place = function_place(self.function)
            problems = [Problem(one.code, one.found, one.instead, place) for one in error.problems]
            trace.problems[:] = problems
            raise BuildError(problems) from None
        return given, left

    def _run(self, trace: Trace, expected: tuple[Target, Target]) -> None:
        given = trace.ref({"ref": "input"}, expected[0].schema)
        trace.author = self.function.__globals__
        try:
            value: Any = self.function(given)
        except ArmFailed:
            return
        except BuildError:
            raise
        except Exception as error:
            misuse = explained(trace, error)
            if misuse is not None or any(one.code != "ARM_RAISED" for one in trace.problems):
                raise misuse or BuildError(trace.problems) from error
            raise
        if inspect.iscoroutine(value):
            value.close()
            raise trace.refuse("ASYNC", f"{self.id} gives a coroutine", "write a plain `def`")
        trace.standing = place = function_place(self.function)
        output = express(trace, value, expected[1], f"what {self.__name__} returns")
        trace.add(
            "END", trace.make_key(None, "done"), {"outcome": "SUCCEEDED", "output": output}, None, place
        )

    @cached_property
    def _hints(self) -> tuple[Any, Any]:
        """The types of input and output."""
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise _problem(
                self.function,
                "UNKNOWN_NAME",
                f"an annotation of {self.id} cannot be resolved ({error})",
                "define its types at the top level of a module, and import them outside `if TYPE_CHECKING`",
            ) from None
        name = next(iter(inspect.signature(self.function).parameters))
        return hints[name], hints["return"]

    @cached_property
    def _input_adapter(self) -> TypeAdapter[In]:
        return TypeAdapter(self._hints[0])

    @cached_property
    def _output_adapter(self) -> TypeAdapter[Out]:
        return TypeAdapter(self._hints[1])

    def dump_input(self, value: In) -> Json:
        """The JSON of an input. Raises InvalidArgument when the value is not of the declared type."""
        return dump_checked(self._input_adapter, value, f"the input of {self.id}")

    def parse_input(self, value: Json) -> In:
        """An input from its JSON. Raises InvalidArgument."""
        return cast(In, _parsed(self._input_adapter, value, f"input of {self.id}"))

    def parse_output(self, value: Json) -> Out:
        """An output from its JSON. Raises InvalidArgument."""
        return cast(Out, _parsed(self._output_adapter, value, f"output of {self.id}"))

    def __call__(self, *_args: object, **_kwargs: object) -> typing.NoReturn:
        """Refused: a workflow is compiled and started, never called."""
        found = f"the workflow {self.id} was called"
        recorder = RECORDER.get()
        if recorder is not None:
            raise recorder.refuse("NESTED", f"{found} inside a workflow function", _INSTEAD_OF_NESTING)
        instead = "use .compile(), or start it with a client"
        raise BuildError([Problem("CALLED", f"{found}: it runs in the server only", instead, caller_place())])

    def _repr_svg_(self) -> str | None:
        """What a notebook shows: the picture, when there is one."""
        try:
            return svg_of(self.compile().definition)
        except BuildError:
            return None

    def _repr_html_(self) -> str | None:
        """What a notebook shows instead of a picture: every misuse."""
        try:
            self.compile()
        except BuildError as error:
            return problems_html(error)
        return None

    def __repr__(self) -> str:
        return f"<workflow {self.id} version {self.version}>"


@dataclass(frozen=True, slots=True)
class _Meta:
    title: str | None
    description: str | None
    on_failure: FailurePolicy


_INSTEAD_OF_NESTING = (
    "call a handler that starts the other workflow, and wait for a signal that it sends at its end; "
    "a plain function may hold what both share"
)


def workflow(
    id: str,  # noqa: A002 - the word of the definition
    *,
    version: int,
    title: str | None = None,
    description: str | None = None,
    on_failure: FailurePolicy = "REVIEW",
) -> Callable[[Callable[[In], Out]], Workflow[In, Out]]:
    """Declare a function of one reference as the workflow `id` in `version`.

    `on_failure` is what definite failures of its steps do unless a step says otherwise.
    """
    problem = _declared_wrongly(id, version, on_failure)
    if problem is not None:
        raise BuildError([Problem(*problem, caller_place())])

    def declare(function: Callable[[In], Out]) -> Workflow[In, Out]:
        wrong = _wrong_shape(function, id)
        if wrong is not None:
            raise _problem(function, *wrong)
        return Workflow(function, id=id, version=version, meta=_Meta(title, description, on_failure))

    return declare


def _declared_wrongly(id_: object, version: object, on_failure: object) -> tuple[BuildCode, str, str] | None:
    if not isinstance(id_, str) or not is_name(id_):
        return (
            "NAME",
            f"{id_!r} is not a workflow id",
            'write lower-case words joined by dots: "jobs.external"',
        )
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        return "VERSION", f"the version of {id_} is {version!r}", "write a whole number from 1 on"
    if on_failure not in ("REVIEW", "FAIL"):
        return "OPTION", f"on_failure is {on_failure!r}", 'write "REVIEW" or "FAIL"'
    return None


def _wrong_shape(function: Any, id_: str) -> tuple[BuildCode, str, str] | None:
    """Code, what was found, what to write; None when all is well."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return (
            "ASYNC",
            f"{id_} is an async function",
            "write a plain `def`: nothing is awaited while it is built",
        )
    if inspect.isgeneratorfunction(function):
        return "GENERATOR", f"{id_} is a generator", "write a plain `def` that returns the output"
    if not inspect.isfunction(function):
        return "WORKFLOW_SHAPE", f"{id_} is not a plain function", "decorate a module-level `def`"
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) != 1 or parameters[0].kind not in kinds:
        return "WORKFLOW_SHAPE", f"{id_} takes {len(parameters)} parameters", "take exactly one: the input"
    only = parameters[0]
    if only.default is not inspect.Parameter.empty:
        return (
            "WORKFLOW_SHAPE",
            f"{only.name!r} of {id_} has a default",
            "drop it: every start gives an input",
        )
    if only.annotation is inspect.Parameter.empty:
        return "MISSING_ANNOTATION", f"{only.name!r} of {id_} has no type", f"write `{only.name}: <type>`"
    if signature.return_annotation is inspect.Signature.empty:
        return "MISSING_ANNOTATION", f"{id_} has no output type", "write `-> <type>`, or `-> None`"
    return None


def _problem(function: object, code: BuildCode, found: str, instead: str) -> BuildError:
    return BuildError([Problem(code, found, instead, function_place(function))])


def _all_problems(trace: Trace, error: BuildError) -> list[Problem]:
    """What was recorded, and the escaping error when it came from elsewhere (a declaration)."""
    known = list(trace.problems)
    return _once(known + [one for one in error.problems if one not in known])


def _once(problems: list[Problem]) -> list[Problem]:
    """What the scan and the reference itself both told is told once."""
    seen: set[tuple[str, str, int]] = set()
    found: list[Problem] = []
    for one in problems:
        place = one.place
        key = (one.code, place.file, place.line) if place is not None else (one.code, one.found, 0)
        if one.code not in ("CLASS_TEST", "TEXT") or key not in seen:
            found.append(one)
        seen.add(key)
    return found


def _loaded(document: dict[str, Json], side: Mapping[str, Place]) -> Definition:
    try:
        return load_definition(document)
    except InvalidArgument as error:
        problems = [
            Problem(
                "FORM_INVALID",
                f"{detail.field} {detail.reason}",
                "see the definition format",
                _near(detail.field, side),
            )
            for detail in error.details
        ]
        whole = Problem("FORM_INVALID", error.message, "see the definition format", side.get(WHOLE))
        raise BuildError(problems or [whole]) from None


def _near(field: str, side: Mapping[str, Place]) -> Place | None:
    """The place of the node that a field path names, else of the whole workflow."""
    parts = field.split(".")
    return side.get(f"nodes.{parts[1]}" if parts[0] == "nodes" and len(parts) > 1 else WHOLE, side.get(WHOLE))


def _parsed(adapter: TypeAdapter[Any], value: Json, what: str) -> Any:
    try:
        return adapter.validate_json(to_json(value), strict=True)
    except ValidationError as error:
        raise InvalidArgument(f"this is no {what}", error_details(error)) from None
