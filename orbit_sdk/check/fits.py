"""Whether the values of one type are values of another: always, never, or only at run time.

ALWAYS and NEVER are proofs; what cannot be proved either way is RUNTIME. Types may be recursive. The work
is bounded by a budget: a comparison that uses it up proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

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
from orbit_sdk.values.json_strict import Json

Accepts = Callable[[TypeSchema, Json], bool]
"""Whether a value is of a type, judged by the validator that runs in production."""

Atom = AnyType | ObjectType | ArrayType | StringType | IntegerType | NumberType | EnumType
"""A type that is neither a name nor a union; constants, booleans and null are written as enums."""

_Pair = tuple[int, int]
_Pairs = frozenset[_Pair]

ANY = AnyType()
_BUDGET = 20_000
_DEPTH = 64
"""Levels of a value: no JSON that is accepted has so many."""
_BOOLEAN = EnumType.model_construct(enum=(False, True))
_NULL = EnumType.model_construct(enum=(None,))


class Fit(StrEnum):
    """How the values of a source relate to a target."""

    ALWAYS = "ALWAYS"
    RUNTIME = "RUNTIME"
    NEVER = "NEVER"


class Fitter:
    """Compares types of one document."""

    def __init__(self, types: Mapping[str, TypeSchema], accepts: Accepts) -> None:
        self._types = types
        self._accepts = accepts
        self._atoms: dict[int, tuple[TypeSchema, tuple[Atom, ...]]] = {}
        self._left = 0

    def fit(self, source: TypeSchema, target: TypeSchema) -> Fit:
        """How every value of `source` stands to `target`."""
        self._left = _BUDGET
        if self._within(source, target, frozenset()):
            return Fit.ALWAYS
        return Fit.NEVER if self.is_apart(source, target) else Fit.RUNTIME

    def is_apart(self, left: TypeSchema, right: TypeSchema) -> bool:
        """Whether certainly no value is of both types."""
        self._left = _BUDGET
        return self._apart(left, right, frozenset())

    def atoms(self, schema: TypeSchema) -> tuple[Atom, ...]:
        """The alternatives of a type: names resolved, unions opened; none for a name that leads to itself."""
        known = self._atoms.get(id(schema))
        if known is None:
            # The schema is kept beside its atoms so that its id cannot be taken by another object.
            known = (schema, tuple(self._alternatives(schema, set())))
            self._atoms[id(schema)] = known
        return known[1]

    def _alternatives(self, schema: TypeSchema, seen: set[str]) -> Iterator[Atom]:
        """Each name is followed once: unions of unions would double the work with every level."""
        if isinstance(schema, RefType):
            if schema.target not in seen and schema.target in self._types:
                seen.add(schema.target)
                yield from self._alternatives(self._types[schema.target], seen)
        elif isinstance(schema, UnionType):
            for part in schema.any_of:
                yield from self._alternatives(part, seen)
        elif isinstance(schema, ConstType):
            yield EnumType.model_construct(enum=(schema.const,))
        elif isinstance(schema, BooleanType):
            yield _BOOLEAN
        elif isinstance(schema, NullType):
            yield _NULL
        else:
            yield schema

    def _spend(self) -> bool:
        self._left -= 1
        return self._left > 0

    # Within: every value of the source is a value of the target. A pair that is met again lies around a
    # smaller part of the value (atoms never lead straight back to themselves), so meeting it closes the
    # proof: JSON values end.

    def _within(self, source: TypeSchema, target: TypeSchema, seen: _Pairs) -> bool:
        pair = (id(source), id(target))
        if source is target or pair in seen:
            return True
        if len(seen) > _DEPTH or not self._spend():
            return False
        seen |= {pair}
        targets = self.atoms(target)
        return all(self._atom_within(atom, target, targets, seen) for atom in self.atoms(source))

    def _atom_within(self, atom: Atom, target: TypeSchema, targets: Sequence[Atom], seen: _Pairs) -> bool:
        if isinstance(atom, EnumType):
            return all(self._accepts(target, value) for value in atom.enum)
        return any(self._one_within(atom, other, seen) for other in targets)

    def _one_within(self, source: Atom, target: Atom, seen: _Pairs) -> bool:
        if source is target or isinstance(target, AnyType):
            return True
        if isinstance(source, ObjectType) and isinstance(target, ObjectType):
            return self._object_within(source, target, seen)
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            return _range_within(_counts(source), _counts(target)) and (
                source.max_items == 0 or self._within(source.items or ANY, target.items or ANY, seen)
            )
        if isinstance(source, StringType) and isinstance(target, StringType):
            return (
                _range_within(_lengths(source), _lengths(target))
                and target.pattern in (None, source.pattern)
                and target.format in (None, source.format)
            )
        if isinstance(source, IntegerType | NumberType) and isinstance(target, IntegerType | NumberType):
            return _number_within(source, target)
        return False

    def _object_within(self, source: ObjectType, target: ObjectType, seen: _Pairs) -> bool:
        if not set(target.required_names) <= set(source.required_names):
            return False
        for name in {*source.fields, *target.fields}:
            have = _property(source, name)
            want = _property(target, name)
            if have is None:
                continue
            if want is None or not self._within(have, want, seen):
                return False
        rest, allowed = _rest(source), _rest(target)
        if rest is None:
            return True
        return allowed is not None and self._within(rest, allowed, seen)

    # Apart: no value is of both types.

    def _apart(self, left: TypeSchema, right: TypeSchema, seen: _Pairs) -> bool:
        pair = (id(left), id(right))
        if pair in seen or len(seen) > _DEPTH or not self._spend():
            return False
        seen |= {pair}
        return all(
            self._atoms_apart(one, other, seen) for one in self.atoms(left) for other in self.atoms(right)
        )

    def _atoms_apart(self, one: Atom, other: Atom, seen: _Pairs) -> bool:
        if isinstance(one, EnumType):
            return not any(self._accepts(other, value) for value in one.enum)
        if isinstance(other, EnumType):
            return not any(self._accepts(one, value) for value in other.enum)
        if isinstance(one, AnyType) or isinstance(other, AnyType):
            return False
        if isinstance(one, ObjectType) and isinstance(other, ObjectType):
            return self._objects_apart(one, other, seen)
        if isinstance(one, ArrayType) and isinstance(other, ArrayType):
            if _ranges_apart(_counts(one), _counts(other)):
                return True
            never_empty = bool(one.min_items or other.min_items)
            return never_empty and self._apart(one.items or ANY, other.items or ANY, seen)
        if isinstance(one, StringType) and isinstance(other, StringType):
            return _ranges_apart(_lengths(one), _lengths(other))
        if isinstance(one, IntegerType | NumberType) and isinstance(other, IntegerType | NumberType):
            return _ranges_apart(_bounds(one), _bounds(other))
        return True

    def _objects_apart(self, one: ObjectType, other: ObjectType, seen: _Pairs) -> bool:
        for name in {*one.required_names, *other.required_names}:
            first, second = _property(one, name), _property(other, name)
            if first is None or second is None or self._apart(first, second, seen):
                return True
        return False


def _property(schema: ObjectType, name: str) -> TypeSchema | None:
    """The type of a property where it is there; None where it must not be."""
    found = schema.fields.get(name)
    return _rest(schema) if found is None else found


def _rest(schema: ObjectType) -> TypeSchema | None:
    """The type of undeclared properties; None where there may be none."""
    if schema.additional is False:
        return None
    return ANY if schema.additional is None else schema.additional


_Range = tuple[float, float, bool, bool]
"""Low, high, low excluded, high excluded."""


def _counts(schema: ArrayType) -> _Range:
    return _whole_range(schema.min_items, schema.max_items)


def _lengths(schema: StringType) -> _Range:
    return _whole_range(schema.min_length, schema.max_length)


def _whole_range(low: int | None, high: int | None) -> _Range:
    return (low or 0, math.inf if high is None else high, False, False)


def _bounds(schema: IntegerType | NumberType) -> _Range:
    low, low_open = _tighter(schema.minimum, schema.exclusive_minimum, max)
    high, high_open = _tighter(schema.maximum, schema.exclusive_maximum, min)
    return (-math.inf if low is None else low, math.inf if high is None else high, low_open, high_open)


def _tighter(
    closed: float | None, excluded: float | None, choose: Callable[[float, float], float]
) -> tuple[float | None, bool]:
    if excluded is None:
        return closed, False
    if closed is None or choose(closed, excluded) == excluded:
        return excluded, True
    return closed, False


def _range_within(inner: _Range, outer: _Range) -> bool:
    low, high, low_open, high_open = inner
    least, most, least_open, most_open = outer
    above = low > least or (low == least and (low_open or not least_open))
    below = high < most or (high == most and (high_open or not most_open))
    return above and below


def _ranges_apart(one: _Range, other: _Range) -> bool:
    def before(left: _Range, right: _Range) -> bool:
        return left[1] < right[0] or (left[1] == right[0] and (left[3] or right[2]))

    return before(one, other) or before(other, one)


def _number_within(source: IntegerType | NumberType, target: IntegerType | NumberType) -> bool:
    if isinstance(target, IntegerType) and isinstance(source, NumberType):
        return False
    if target.multiple_of is not None and not _divides(target.multiple_of, source):
        return False
    return _range_within(_bounds(source), _bounds(target))


def _divides(step: float, source: IntegerType | NumberType) -> bool:
    """Whether every value of the source is a multiple of `step`; fractions are compared by sight only."""
    own = source.multiple_of
    if step == own:
        return True
    if step != int(step):
        return False
    if own is None:
        return step == 1 and isinstance(source, IntegerType)
    return own == int(own) and int(own) % int(step) == 0
