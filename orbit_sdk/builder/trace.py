"""What is recorded while a workflow function runs: nodes, open exits, the arm one is in, every misuse.

One trace belongs to one compile on one thread. References keep their trace, so a reference of another
workflow, or one used after the end, is recognised.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from orbit_sdk.builder import shapes
from orbit_sdk.builder.endless import INSTEAD_OF_LOOPS, turning_here
from orbit_sdk.builder.graph import Draft, Expr, OpenExit, Scope
from orbit_sdk.builder.guards import is_text
from orbit_sdk.builder.refs import Owner, Ref, RefData
from orbit_sdk.check.narrow import Certain, certain
from orbit_sdk.definition import expressions
from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.options import StepOptions
from orbit_sdk.handlers.problems import BuildCode, BuildError, Place, Problem, caller_place
from orbit_sdk.handlers.recording import RECORDER
from orbit_sdk.handlers.type_schemas import Schema, TypeBook, TypeRefused
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_sdk.values.names import RESERVED_KEYS, is_step_key

__all__ = ["Captured", "Language", "Trace", "near"]


Arguments = tuple[tuple[object, ...], Mapping[str, object]]
"""Positional and named arguments of a call."""


@dataclass(slots=True)
class Captured:
    """The one handler call that a poll asks over and over."""

    handler: Handler[..., Any]
    input: dict[str, Expr]
    options: StepOptions
    ref: Ref


@dataclass(frozen=True, slots=True)
class Language:
    """What the trace hands on: how a call becomes a step, and operators become conditions."""

    declare_step: Callable[[Trace, Handler[..., Any], Arguments, StepOptions], Any]
    compare: Callable[[Trace, str, Ref, object], Any]
    join: Callable[[Trace, str, object, object], Any]


class Trace:
    """The builder behind one run of one workflow function (a `Recorder` for handlers)."""

    def __init__(self, name: str, on_failure: str, language: Language) -> None:
        self.name = name
        self.on_failure = on_failure
        self.language = language
        self.book = TypeBook()
        self.handlers: dict[str, Handler[..., Any]] = {}
        self.handler_schemas: dict[str, tuple[dict[str, Schema], Schema]] = {}
        self.signals: dict[str, Schema] = {}
        self.drafts: list[Draft] = []
        self.problems: list[Problem] = []
        self.warnings: list[tuple[str, Draft, str, str]] = []
        self.closed = False
        self.standing: Place | None = None
        self.author: Mapping[str, Any] | None = None
        self.capturing: list[Captured] | None = None
        self.entry = Draft("START", "", {}, None)
        self.root = Scope("the workflow", None, [OpenExit(self.entry, "next")])
        self.scope = self.root
        self._keys: set[str] = set(RESERVED_KEYS)
        self._adapters: dict[int, tuple[Any, TypeAdapter[Any]]] = {}

    # Misuse.

    def refuse(self, code: BuildCode, found: str, instead: str, place: Place | None = None) -> BuildError:
        """Remember a misuse, so that it cannot be swallowed, and give the error to raise."""
        standing = None if self.closed else self.standing
        problem = Problem(code, found, instead, place or standing or caller_place())
        self.problems.append(problem)
        current = RECORDER.get()
        if isinstance(current, Trace) and current is not self:
            current.problems.append(problem)
        return BuildError([problem])

    def warn(self, code: str, draft: Draft, found: str, instead: str) -> None:
        """Remember something about a node that is allowed, and hardly meant."""
        self.warnings.append((code, draft, found, instead))

    def schema(self, annotation: object, where: str) -> Schema:
        """The normal form of a Python type. Raises BuildError."""
        try:
            return self.book.schema(annotation, where)
        except TypeRefused as refused:
            raise self.refuse("TYPE", f"{refused.where}: {refused.found}", refused.instead) from None

    def adapter(self, annotation: Any) -> TypeAdapter[Any]:
        """The pydantic adapter of a type, kept for this build."""
        found = self._adapters.get(id(annotation))
        if found is None:
            found = self._adapters[id(annotation)] = (annotation, TypeAdapter(annotation))
        return found[1]

    def check_constant(self, kind: Any, value: Json) -> None:
        """Judge a constant that was put together field by field by its model's own rules."""
        try:
            self.adapter(kind).validate_json(to_json(value), strict=True)
        except ValidationError as error:
            reason = error.errors(include_url=False, include_context=False)[0]["msg"]
            raise self.refuse(
                "LITERAL", f"{kind.__name__} refuses {value!r} ({reason})", "fix the values"
            ) from None

    # The graph.

    def add(
        self,
        kind: str,
        key: str,
        body: dict[str, Any],
        exit_name: str | None = "next",
        place: Place | None = None,
    ) -> Draft:
        """A node behind all that is open here; it becomes what is open, unless it is an end."""
        draft = Draft(kind, key, body, place or caller_place())
        self.place_node(draft, exit_name)
        return draft

    def place_node(self, draft: Draft, exit_name: str | None) -> None:
        """Put a made node behind everything that is open here."""
        scope = self.scope
        if not scope.open:
            raised = [one for one in self.problems if one.code == "ARM_RAISED"]
            if raised:  # what stands behind a half declared arm is no fault of its own
                raise BuildError(raised)
            raise self.refuse(
                "AFTER_FAIL",
                f"{draft.key} comes after orbit.fail(): nothing leads there",
                "do not catch what orbit.fail raises, and put nothing behind it",
            )
        if len(self.drafts) >= _MOST_DRAFTS:
            raise self.refuse(
                "ENDLESS",
                f"more than {_MOST_DRAFTS} nodes are declared{turning_here()}",
                INSTEAD_OF_LOOPS,
            )
        for item in scope.open:
            item.draft.exits[item.exit] = draft
        scope.open = [] if exit_name is None else [OpenExit(draft, exit_name)]
        counted: Scope | None = scope
        while counted is not None:
            counted.made += 1
            counted = counted.parent
        self.drafts.append(draft)

    def make_key(self, wanted: str | None, base: str) -> str:
        """An explicit key as it is, else a new one made of `base`: unique, in order, within the grammar."""
        if wanted is not None:
            if not is_text(wanted) or not is_step_key(wanted):
                reserved = " (the word is reserved)" if wanted in ("input", "instance") else ""
                raise self.refuse(
                    "KEY", f"{wanted!r} is not a step key{reserved}", "write lower-case letters, digits and _"
                )
            if wanted in self._keys:
                raise self.refuse(
                    "KEY", f"the step key {wanted!r} is used twice", "give each step its own key"
                )
            self._keys.add(wanted)
            return wanted
        word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", base).lower()
        word = re.sub(r"[^a-z0-9]+", "_", word).strip("_")[:56].rstrip("_") or "step"
        if not word[0].isalpha():
            word = f"step_{word}"[:56]
        key, number = word, 2
        while key in self._keys:
            key, number = f"{word}_{number}", number + 1
        self._keys.add(key)
        return key

    # References.

    def ref(self, expr: Expr, schema: Schema, *, signal: str | None = None) -> Any:
        """A reference made here."""
        return Ref(RefData(self, expr, schema, self.scope, signal))

    def compare(self, operator: str, ref: Ref, other: object) -> Any:
        """`ref == other` and its kin."""
        self._refuse_elsewhere(ref)
        return self.language.compare(self, operator, ref, other)

    def join(self, operator: str, left: object, right: object) -> Any:
        """`left & right`, `left | right`."""
        self._refuse_elsewhere(left)
        return self.language.join(self, operator, left, right)

    def check_current(self, owner: Owner, what: str) -> None:
        """Refuse something that belongs to another workflow, or to one whose function has ended."""
        if owner is not self:
            raise self.refuse(
                "OTHER_WORKFLOW",
                f"{what} belongs to the workflow {owner.name}, but {self.name} is being built",
                "pass what is needed through the input",
            )
        if self.closed:
            raise self.refuse(
                "FINISHED", f"{what} is used after {self.name} was built", "use it in the function"
            )

    def _refuse_elsewhere(self, what: object) -> None:
        """Refuse an operation on a reference outside the build it belongs to."""
        current = RECORDER.get()
        if isinstance(current, Trace) and current is not self:
            current.check_current(self, repr(what))
        if self.closed:
            raise self.refuse("FINISHED", f"{what!r} is used after {self.name} was built", _INSIDE)

    def field(self, data: RefData, name: str) -> Any:
        """`ref.name`."""
        self._refuse_elsewhere(Ref(data))
        if data.unusable is not None:
            raise self.refuse("UNUSABLE", *data.unusable)
        types = self.book.types
        schema = data.schema
        if shapes.is_nullable(schema, types):
            if not self.is_certain(data):
                raise self.refuse(
                    "OPTIONAL",
                    f"{self.label(data)} may be null, so {name!r} cannot be read from it",
                    "use orbit.when_some(value, lambda v: …, lambda: …)",
                )
            schema = shapes.without_null(schema, types)
        found = shapes.field_of(schema, name, types)
        if found is None:
            raise self._no_field(data, schema, name)
        return Ref(RefData(self, inside(data.expr, name), found, data.scope))

    def is_author(self, names: Mapping[str, Any]) -> bool:
        """Whether these are the global names of the workflow function's module, while it is built."""
        return names is self.author and not self.closed

    def item(self, data: RefData, key: object) -> Any:
        """`ref[key]`, for objects that are used as mappings."""
        if isinstance(key, str):
            return self.field(data, key)
        raise self.refuse(
            "COMPUTE",
            f"an item or a slice was asked of {self.label(data)}: nothing runs while a definition is built",
            "take the item in a handler, or give the parts names in a model",
        )

    def _no_field(self, data: RefData, schema: Schema, name: str) -> BuildError:
        names = shapes.field_names(schema, self.book.types)
        label = self.label(data)
        if not names:
            return self.refuse(
                "NO_FIELD",
                f"{name!r} was asked of {label}, which has no fields; nothing runs while it is built",
                "use the reference itself, or compute in a handler",
            )
        return self.refuse(
            "NO_FIELD",
            f"{label} has no field {name!r}{near(name, names)}",
            f"use one of {', '.join(names)}; methods cannot run while a definition is built",
        )

    def is_certain(self, data: RefData) -> bool:
        """Whether a nullable reference was tested for null on the way here."""
        ref = data.expr.get("ref")
        if ref is None:
            return False
        fact = certain(expressions.Ref.model_validate(data.expr))
        wanted = max(fact, key=lambda known: len(known.path) if isinstance(known, Certain) else 0)
        return wanted in self.scope.all_known()

    def label(self, data: RefData) -> str:
        """`<ref prepare.path: string>`."""
        return f"<ref {_words(data.expr)}: {shapes.describe(data.schema)}>"

    # What handlers ask (the Recorder).

    def step(
        self,
        handler: Handler[..., Any],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        options: StepOptions,
    ) -> Any:
        """Declare a step and give the reference to its result."""
        return self.language.declare_step(self, handler, (args, kwargs), options)


_MOST_DRAFTS = 4 * DEFAULT_LIMITS.nodes
"""More than a definition may hold even when every MERGE of it is dropped again."""

_INSIDE = "use references only inside the workflow function"


def inside(expr: Expr, name: str) -> Expr:
    """The expression of a property of what `expr` says."""
    if "const" in expr:
        value = expr["const"]
        return {"const": value.get(name) if isinstance(value, dict) else None}
    fields = expr.get("object")
    if isinstance(fields, dict):
        inner: Json = fields.get(name, {"const": None})
        assert isinstance(inner, dict)
        return inner
    path = expr.get("path", [])
    assert isinstance(path, list)
    return {**expr, "path": [*path, name]}


def near(name: str, names: Iterable[str]) -> str:
    """` (did you mean job_id?)`, or nothing."""
    found = difflib.get_close_matches(name, list(names), n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(found)}?)" if found else ""


def _words(expr: Expr) -> str:
    if "const" in expr:
        return repr(expr["const"])
    ref = expr.get("ref")
    if not isinstance(ref, str):
        return "made here"
    path = expr.get("path", [])
    of = [str(expr["of"])] if "of" in expr else []
    assert isinstance(path, list)
    return ".".join([ref, *of, *(str(part) for part in path)])
