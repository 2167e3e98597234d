"""Expressions: data that says which value is meant; never code.

An expression has exactly one of the keys `const`, `ref`, `object`, `array`, `text`; a condition
exactly one of `eq ne lt le gt ge in is_null and or not`. A comparison of decimals or instants, which
JSON carries as texts, says so with `as`; everything else compares plainly, like types only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from orbit_sdk.definition.base import FieldName, JsonValue, Maybe, Model, Some, SortedSome, tag_by_key
from orbit_sdk.values.names import STEP_KEY_PATTERN
from orbit_sdk.values.paths import PathPart

__all__ = [
    "And",
    "ArrayExpr",
    "CompareAs",
    "Comparison",
    "Condition",
    "Const",
    "Eq",
    "Expression",
    "FactKey",
    "FactPart",
    "Ge",
    "Gt",
    "In",
    "IsNull",
    "Le",
    "Located",
    "Lt",
    "Ne",
    "Not",
    "ObjectExpr",
    "Or",
    "Ref",
    "TextExpr",
    "operands",
    "parts_of",
    "refs_of",
]

FactPart: TypeAlias = Literal["result", "failure", "meta"]
CompareAs: TypeAlias = Literal["decimal", "date-time"]


@dataclass(frozen=True, slots=True)
class FactKey:
    """Names one fact of an instance: its input, its own data, or what a step left behind."""

    source: Literal["input", "instance", "step"]
    step: str = ""
    of: FactPart = "result"

    def __str__(self) -> str:
        name = self.step or self.source
        return name if self.of == "result" else f"{name}.{self.of}"


class Const(Model):
    """A literal value."""

    const: JsonValue


class Ref(Model):
    """A fact, or something inside it: `ref` is `input`, `instance` or a step key.

    `of` is absent for the result; `path` is absent for the whole and holds property names.
    """

    ref: Annotated[str, Field(pattern=STEP_KEY_PATTERN)]
    of: Maybe[Literal["failure", "meta"]] = None
    path: Maybe[Some[FieldName]] = None

    @property
    def fact(self) -> FactKey:
        """The fact that this reference reads."""
        if self.ref == "input":
            return FactKey("input", "", self.of or "result")
        if self.ref == "instance":
            return FactKey("instance", "", self.of or "result")
        return FactKey("step", self.ref, self.of or "result")

    @property
    def steps(self) -> tuple[str, ...]:
        """The path inside the fact, empty for the whole."""
        return self.path or ()


class ObjectExpr(Model):
    """An object whose values are expressions."""

    object: dict[FieldName, Expression]


class ArrayExpr(Model):
    """An array whose items are expressions."""

    array: Annotated[tuple[Expression, ...], Field(strict=False)]


_Piece: TypeAlias = Annotated[
    Annotated[str, Field(min_length=1), Tag("<literal>")] | Annotated[Ref, Tag("<ref>")],
    Discriminator(lambda value: "<literal>" if isinstance(value, str) else "<ref>"),
]


class TextExpr(Model):
    """A text put together from literal pieces and references to texts or integers."""

    text: Some[_Piece]


_EXPRESSIONS = ("const", "ref", "object", "array", "text")
_CONDITIONS = ("eq", "ne", "lt", "le", "gt", "ge", "in", "is_null", "and", "or", "not")
_PYTHON_NAMES = {"<in_>": "<in>", "<and_>": "<and>", "<or_>": "<or>", "<not_>": "<not>"}


def _expression_tag(value: Any) -> str | None:
    return tag_by_key(value, _EXPRESSIONS)


def _condition_tag(value: Any) -> str | None:
    tag = tag_by_key(value, _CONDITIONS) or tag_by_key(value, ("in_", "and_", "or_", "not_"))
    return _PYTHON_NAMES.get(tag, tag) if tag else None


Expression: TypeAlias = Annotated[
    Annotated[Const, Tag("<const>")]
    | Annotated[Ref, Tag("<ref>")]
    | Annotated[ObjectExpr, Tag("<object>")]
    | Annotated[ArrayExpr, Tag("<array>")]
    | Annotated[TextExpr, Tag("<text>")],
    Discriminator(
        _expression_tag,
        custom_error_type="expression",
        custom_error_message="is not an expression: it needs exactly one of const, ref, object, array, text",
    ),
]

Pair: TypeAlias = Annotated[tuple[Expression, Expression], Field(strict=False)]


class _Compare(Model):
    """Two expressions of like types; `as` is given where both are texts that mean something else."""

    as_: Maybe[CompareAs] = Field(default=None, alias="as")


class Eq(_Compare):
    """Both are equal."""

    eq: Pair


class Ne(_Compare):
    """Both differ."""

    ne: Pair


class Lt(_Compare):
    """The first is smaller."""

    lt: Pair


class Le(_Compare):
    """The first is smaller or equal."""

    le: Pair


class Gt(_Compare):
    """The first is larger."""

    gt: Pair


class Ge(_Compare):
    """The first is larger or equal."""

    ge: Pair


class Members(Model):
    """What `in` looks for, and the constants it looks among."""

    value: Expression
    among: SortedSome[JsonValue]


class In(_Compare):
    """The value is one of the constants."""

    in_: Members = Field(alias="in")


class IsNull(Model):
    """The value is null."""

    is_null: Expression


class And(Model):
    """All of at least two conditions, judged in order until one fails."""

    and_: Annotated[tuple[Condition, ...], Field(strict=False, min_length=2, alias="and")]


class Or(Model):
    """Any of at least two conditions, judged in order until one holds."""

    or_: Annotated[tuple[Condition, ...], Field(strict=False, min_length=2, alias="or")]


class Not(Model):
    """The condition does not hold."""

    not_: Condition = Field(alias="not")


Comparison: TypeAlias = Eq | Ne | Lt | Le | Gt | Ge

Condition: TypeAlias = Annotated[
    Annotated[Eq, Tag("<eq>")]
    | Annotated[Ne, Tag("<ne>")]
    | Annotated[Lt, Tag("<lt>")]
    | Annotated[Le, Tag("<le>")]
    | Annotated[Gt, Tag("<gt>")]
    | Annotated[Ge, Tag("<ge>")]
    | Annotated[In, Tag("<in>")]
    | Annotated[IsNull, Tag("<is_null>")]
    | Annotated[And, Tag("<and>")]
    | Annotated[Or, Tag("<or>")]
    | Annotated[Not, Tag("<not>")],
    Discriminator(
        _condition_tag,
        custom_error_type="condition",
        custom_error_message="is not a condition: it needs exactly one of "
        "eq, ne, lt, le, gt, ge, in, is_null, and, or, not",
    ),
]


@dataclass(frozen=True, slots=True)
class Located:
    """An expression or a condition with its path inside the node (or expression) it belongs to."""

    path: tuple[PathPart, ...]
    item: Expression | Condition


def parts_of(item: Expression | Condition) -> tuple[Located, ...]:
    """The expressions and conditions directly inside this one."""
    match item:
        case Const() | Ref():
            return ()
        case ObjectExpr(object=fields):
            return tuple(Located(("object", name), value) for name, value in fields.items())
        case ArrayExpr(array=items):
            return tuple(Located(("array", index), value) for index, value in enumerate(items))
        case TextExpr(text=pieces):
            return tuple(
                Located(("text", n), piece) for n, piece in enumerate(pieces) if isinstance(piece, Ref)
            )
        case In(in_=members):
            return (Located(("in", "value"), members.value),)
        case IsNull(is_null=value):
            return (Located(("is_null",), value),)
        case And(and_=items):
            return tuple(Located(("and", index), value) for index, value in enumerate(items))
        case Or(or_=items):
            return tuple(Located(("or", index), value) for index, value in enumerate(items))
        case Not(not_=value):
            return (Located(("not",), value),)
        case _:
            name, pair = operands(item)
            return tuple(Located((name, index), value) for index, value in enumerate(pair))


def operands(item: Comparison) -> tuple[str, tuple[Expression, Expression]]:
    """The operator of a comparison and its two sides."""
    match item:
        case Eq(eq=pair):
            return "eq", pair
        case Ne(ne=pair):
            return "ne", pair
        case Lt(lt=pair):
            return "lt", pair
        case Le(le=pair):
            return "le", pair
        case Gt(gt=pair):
            return "gt", pair
        case Ge(ge=pair):
            return "ge", pair


def refs_of(item: Expression | Condition) -> Iterator[tuple[tuple[PathPart, ...], Ref]]:
    """Every reference inside, with its path."""
    if isinstance(item, Ref):
        yield (), item
        return
    for part in parts_of(item):
        for path, ref in refs_of(part.item):
            yield (*part.path, *path), ref
