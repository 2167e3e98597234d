"""Checks a JSON value against a value type; compiled once, then cheap to call.

Verdicts are those of JSON Schema 2020-12, with two additions: formats are judged, and a whole number
lies within ±(2^53-1). Reasons never repeat the value, which may be sensitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, assert_never

from orbit_sdk.definition.formats import FORMAT_RULES
from orbit_sdk.definition.patterns import compile_pattern
from orbit_sdk.definition.unions import discriminator_of, endless_types
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
from orbit_sdk.errors import Detail
from orbit_sdk.values.canonical import canonical_json, same_json
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import MAX_SAFE_INTEGER
from orbit_sdk.values.paths import PathPart, field_path

__all__ = ["Problem", "Validator", "compile_validator"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One misfit: where in the value, and why."""

    path: tuple[PathPart, ...]
    reason: str

    def under(self, part: PathPart) -> Problem:
        """The same problem, seen from one level further out."""
        return Problem((part, *self.path), self.reason)

    def detail(self, *outer: PathPart) -> Detail:
        """As an error's detail; `outer` is the place of the value itself."""
        return Detail(field_path((*outer, *self.path)), self.reason)


_Found: TypeAlias = tuple[Problem, ...]
_Seen: TypeAlias = dict[tuple[str, int], _Found]
_Check: TypeAlias = Callable[[Json, _Seen], _Found]
_Rule: TypeAlias = tuple[Callable[[int | float], bool], str]
Validator: TypeAlias = Callable[[Json], list[Problem]]

_FINE: _Found = ()
_MAX_PROBLEMS = 50


def compile_validator(schema: TypeSchema, types: Mapping[str, TypeSchema]) -> Validator:
    """A function from a value to its misfits (none when it fits; at most 50).

    LookupError when a `$ref` names no type; ValueError when a type is defined by nothing but itself.
    """
    check = _Compiler(types).compiled(schema)

    def validate(value: Json) -> list[Problem]:
        return list(check(value, {})[:_MAX_PROBLEMS])

    return validate


def _problem(reason: str) -> _Found:
    return (Problem((), reason),)


class _Compiler:
    """Turns types into checks; each named type once, so that recursive types end."""

    def __init__(self, types: Mapping[str, TypeSchema]) -> None:
        self._types = types
        self._named: dict[str, _Check | None] = {}
        self._waiting: list[str] = []
        if endless := endless_types(types):
            raise ValueError(f"type {endless[0]} is defined by nothing but itself")

    def compiled(self, schema: TypeSchema) -> _Check:
        """The check of a type, with all names that it leads to."""
        check = self.check_of(schema)
        while self._waiting:
            name = self._waiting.pop()
            self._named[name] = self.check_of(self._types[name])
        return check

    def check_of(self, schema: TypeSchema) -> _Check:
        match schema:
            case RefType():
                return self._named_check(schema.target)
            case ObjectType():
                return self._object(schema)
            case ArrayType():
                return self._array(schema)
            case UnionType():
                return self._union(schema)
            case _:
                return _leaf(schema)

    def _named_check(self, name: str) -> _Check:
        """The named type itself is compiled later: a chain of names may be longer than the stack is deep."""
        if name not in self._types:
            raise LookupError(f"type {name} does not exist")
        if name not in self._named:
            self._named[name] = None
            self._waiting.append(name)

        # A union tries its members one after the other, so each part is judged by each named type once only:
        # unions inside unions would double the work with every level.
        def once(value: Json, seen: _Seen) -> _Found:
            key = name, id(value)
            if key not in seen:
                check = self._named[name]
                assert check is not None, "compiled before any value is judged"
                seen[key] = check(value, seen)
            return seen[key]

        return once

    def _object(self, schema: ObjectType) -> _Check:
        fields = {name: self.check_of(part) for name, part in schema.fields.items()}
        required = schema.required_names
        closed = schema.additional is False
        extra = None
        if schema.additional is not None and schema.additional is not False:
            extra = self.check_of(schema.additional)

        def check(value: Json, seen: _Seen) -> _Found:
            if not isinstance(value, dict):
                return _problem("must be an object")
            found: list[Problem] = [Problem((name,), "is missing") for name in required if name not in value]
            for name, item in value.items():
                part = fields.get(name, extra)
                if part is not None:
                    found.extend(problem.under(name) for problem in part(item, seen))
                elif closed:
                    found.append(Problem((name,), "is not a field of this object"))
            return tuple(found) if found else _FINE

        return check

    def _array(self, schema: ArrayType) -> _Check:
        each = None if schema.items is None else self.check_of(schema.items)
        fewest, most = schema.min_items or 0, schema.max_items

        def check(value: Json, seen: _Seen) -> _Found:
            if not isinstance(value, list):
                return _problem("must be an array")
            found: list[Problem] = []
            if len(value) < fewest:
                found.append(Problem((), f"has fewer than {fewest} items"))
            if most is not None and len(value) > most:
                found.append(Problem((), f"has more than {most} items"))
            if each is not None:
                for index, item in enumerate(value):
                    found.extend(problem.under(index) for problem in each(item, seen))
            return tuple(found) if found else _FINE

        return check

    def _union(self, schema: UnionType) -> _Check:
        marked = discriminator_of(schema, self._types)
        if marked is not None:
            by_value = {text: self.check_of(member) for text, member in marked.members.items()}
            return _by_mark(marked.name, by_value)
        members = tuple(self.check_of(member) for member in schema.any_of)

        def check(value: Json, seen: _Seen) -> _Found:
            closest: _Found = _FINE
            for member in members:
                found = member(value, seen)
                if not found:
                    return _FINE
                # A member that only objects deep inside is the one that was meant.
                if all(problem.path for problem in found):
                    closest = found
            return closest or _problem("fits none of the types of this union")

        return check


_Leaf: TypeAlias = (
    AnyType | StringType | IntegerType | NumberType | BooleanType | NullType | EnumType | ConstType
)


def _leaf(schema: _Leaf) -> _Check:
    match schema:
        case AnyType():
            return _anything
        case StringType():
            return _string(schema)
        case IntegerType():
            return _integer(schema)
        case NumberType():
            return _number(schema)
        case BooleanType():
            return lambda value, _seen: (
                _FINE if isinstance(value, bool) else _problem("must be true or false")
            )
        case NullType():
            return lambda value, _seen: _FINE if value is None else _problem("must be null")
        case EnumType():
            return _constants(schema.enum)
        case ConstType():
            return _constants((schema.const,))
        case _:
            assert_never(schema)


def _anything(_value: Json, _seen: _Seen) -> _Found:
    return _FINE


def _by_mark(name: str, members: Mapping[str, _Check]) -> _Check:
    known = ", ".join(members)

    def check(value: Json, seen: _Seen) -> _Found:
        if not isinstance(value, dict):
            return _problem("must be an object")
        if name not in value:
            return (Problem((name,), "is missing"),)
        member = members.get(canonical_json(value[name]))
        return member(value, seen) if member is not None else (Problem((name,), f"must be one of {known}"),)

    return check


def _constants(values: Iterable[Json]) -> _Check:
    listed = tuple(values)
    texts = frozenset(value for value in listed if isinstance(value, str))
    others = tuple(value for value in listed if not isinstance(value, str))
    shown = ", ".join(canonical_json(value) for value in listed)
    refusal = _problem(f"must be {shown}" if len(listed) == 1 else f"must be one of {shown}")

    def check(value: Json, _seen: _Seen) -> _Found:
        if isinstance(value, str):
            return _FINE if value in texts else refusal
        return _FINE if any(same_json(value, other) for other in others) else refusal

    return check


def _string(schema: StringType) -> _Check:
    shortest, longest = schema.min_length or 0, schema.max_length
    form = schema.format
    in_form = None if form is None else FORMAT_RULES[form]
    matches = None if schema.pattern is None else compile_pattern(schema.pattern)

    def check(value: Json, _seen: _Seen) -> _Found:
        if not isinstance(value, str):
            return _problem("must be a text")
        if len(value) < shortest:
            return _problem(f"is shorter than {shortest} characters")
        if longest is not None and len(value) > longest:
            return _problem(f"is longer than {longest} characters")
        if in_form is not None and not in_form(value):
            return _problem(f"is not of format {form}")
        if matches is not None and not matches(value):
            return _problem(f"does not match {schema.pattern}")
        return _FINE

    return check


def _integer(schema: IntegerType) -> _Check:
    rules = _bounds(schema)

    def check(value: Json, _seen: _Seen) -> _Found:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _problem("must be an integer")
        if isinstance(value, float) and not value.is_integer():
            return _problem("must be an integer")
        if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return _problem("lies outside ±(2^53-1)")
        return _first_broken(rules, value)

    return check


def _number(schema: NumberType) -> _Check:
    rules = _bounds(schema)

    def check(value: Json, _seen: _Seen) -> _Found:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _problem("must be a number")
        return _first_broken(rules, value)

    return check


def _first_broken(rules: Iterable[_Rule], value: float) -> _Found:
    for fine, reason in rules:
        if not fine(value):
            return _problem(reason)
    return _FINE


def _bounds(schema: IntegerType | NumberType) -> tuple[_Rule, ...]:
    rules: list[_Rule] = []
    low, high, step = schema.minimum, schema.maximum, schema.multiple_of
    above, below = schema.exclusive_minimum, schema.exclusive_maximum
    if low is not None:
        rules.append((lambda value: value >= low, f"is less than {_shown(low)}"))
    if high is not None:
        rules.append((lambda value: value <= high, f"is more than {_shown(high)}"))
    if above is not None:
        rules.append((lambda value: value > above, f"is not more than {_shown(above)}"))
    if below is not None:
        rules.append((lambda value: value < below, f"is not less than {_shown(below)}"))
    if step is not None:
        exact = _exact(step)
        rules.append((lambda value: _exact(value) % exact == 0, f"is not a multiple of {_shown(step)}"))
    return tuple(rules)


def _shown(number: float) -> str:
    return canonical_json(number)


def _exact(number: float) -> Fraction:
    """The number as it is written, so that 0.3 is a multiple of 0.1."""
    return Fraction(repr(number))
