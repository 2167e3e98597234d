"""How findings put things: references, values, types and near matches, each always spelt the same way."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.definition.expressions import FactKey, Ref
from orbit_sdk.definition.value_types import (
    AnyType,
    ArrayType,
    BooleanType,
    ConstType,
    EnumType,
    IntegerType,
    NullType,
    NumberType,
    ObjectType,
    RefType,
    StringType,
    TypeSchema,
    UnionType,
)
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

_LONGEST = 80


def ref_text(ref: Ref) -> str:
    """A reference as a person writes it: `submit.failure.code`."""
    return ".".join([str(ref.fact), *ref.steps])


def fact_text(fact: FactKey) -> str:
    """A fact in words."""
    what = {"result": "result", "failure": "failure", "meta": "meta data"}[fact.of]
    return f"the {what} of '{fact.step or fact.source}'"


def value_text(value: Json) -> str:
    """A value as JSON, shortened."""
    return _short(canonical_json(value))


def values_text(values: Iterable[Json]) -> str:
    """Values as a list."""
    return ", ".join(value_text(value) for value in values)


def type_text(schema: TypeSchema) -> str:
    """A type in a short form: `string(maxLength 9) | null`, `{id, note?}`, `[integer]`, `"A" | "B"`."""
    return _short(_type(schema))


def _type(schema: TypeSchema) -> str:
    match schema:
        case RefType():
            return schema.target
        case UnionType(any_of=members):
            return " | ".join(_type(member) for member in members)
        case EnumType(enum=values):
            return " | ".join(canonical_json(value) for value in values)
        case ConstType(const=value):
            return canonical_json(value)
        case AnyType():
            return "anything"
        case ObjectType():
            names = (name if name in schema.required_names else f"{name}?" for name in schema.fields)
            return "{" + ", ".join(names) + "}"
        case ArrayType(items=items):
            return f"[{'anything' if items is None else _type(items)}]"
        case _:
            return schema.type + _bounds(schema)


def _bounds(schema: StringType | IntegerType | NumberType | BooleanType | NullType) -> str:
    given = schema.model_dump(by_alias=True, exclude_unset=True, exclude={"type", "sensitive"})
    return f"({', '.join(f'{name} {value}' for name, value in given.items())})" if given else ""


def article(kind: str) -> str:
    """`a TASK`, `an END`."""
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def near(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'cancel_order'?`, or nothing when nothing is near."""
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean '{found[0]}'?" if found else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))


def duration_text(milliseconds: int) -> str:
    """A duration in its two largest units: `2 d`, `1 h 30 min`, `250 ms`."""
    parts: list[str] = []
    for size, unit in _UNITS:
        count, milliseconds = divmod(milliseconds, size)
        if count:
            parts.append(f"{count} {unit}")
        if len(parts) == 2 or (parts and not count):
            break
    return " ".join(parts) or "0 ms"
