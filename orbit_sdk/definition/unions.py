"""What can be said about types from the document's `types` alone: endless ones, and unions told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from orbit_sdk.definition.value_types import (
    ConstType,
    EnumType,
    ObjectType,
    RefType,
    TypeSchema,
    UnionType,
    resolve,
)
from orbit_sdk.values.canonical import canonical_json

__all__ = ["DiscriminatedUnion", "chain_lengths", "discriminator_of", "endless_types"]


def endless_types(types: Mapping[str, TypeSchema]) -> tuple[str, ...]:
    """Names of types that lead back to themselves without an object or an array between; sorted."""
    direct = {name: _same_level(schema) for name, schema in types.items()}

    def leads_back(start: str) -> bool:
        seen: set[str] = set()
        waiting = list(direct[start])
        while waiting:
            name = waiting.pop()
            if name == start:
                return True
            if name not in seen:
                seen.add(name)
                waiting.extend(direct.get(name, ()))
        return False

    return tuple(name for name in sorted(types) if leads_back(name))


def chain_lengths(types: Mapping[str, TypeSchema]) -> dict[str, int]:
    """How many names follow each other from each type, without an object or an array between, at the most."""
    direct = {name: [each for each in _same_level(schema) if each in types] for name, schema in types.items()}
    lengths: dict[str, int] = {}
    begun: set[str] = set()
    for start in types:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            first = name not in begun
            begun.add(name)
            # One that is begun and has no length yet stands on the way here: it is endless, and told apart.
            open_ = [each for each in direct[name] if each not in begun] if first else []
            waiting += open_
            if not open_:
                waiting.pop()
                lengths[name] = 1 + max((lengths.get(each, 0) for each in direct[name]), default=0)
    return lengths


def _same_level(schema: TypeSchema) -> tuple[str, ...]:
    if isinstance(schema, RefType):
        return (schema.target,)
    if isinstance(schema, UnionType):
        return tuple(member.target for member in schema.any_of if isinstance(member, RefType))
    return ()


@dataclass(frozen=True, slots=True)
class DiscriminatedUnion:
    """A property that every member requires and whose constants tell the members apart.

    `members` maps the canonical JSON of each constant to the member as written in the union.
    """

    name: str
    members: Mapping[str, TypeSchema]


def discriminator_of(union: UnionType, types: Mapping[str, TypeSchema]) -> DiscriminatedUnion | None:
    """How a union of objects is told apart; None when no property does."""
    objects = [resolve(member, types) for member in union.any_of]
    if not all(isinstance(member, ObjectType) for member in objects):
        return None
    candidates = [member for member in objects if isinstance(member, ObjectType)]
    for name in candidates[0].required_names:
        members: dict[str, TypeSchema] = {}
        count = 0
        for written, member in zip(union.any_of, candidates, strict=True):
            marks = _marks(member, name, types)
            count += len(marks)
            members.update(dict.fromkeys(marks, written))
            if not marks:
                break
        else:
            if len(members) == count:
                return DiscriminatedUnion(name, MappingProxyType(members))
    return None


def _marks(member: ObjectType, name: str, types: Mapping[str, TypeSchema]) -> tuple[str, ...]:
    if name not in member.required_names or name not in member.fields:
        return ()
    match resolve(member.fields[name], types):
        case ConstType(const=value):
            return (canonical_json(value),)
        case EnumType(enum=values):
            return tuple(canonical_json(value) for value in values)
        case _:
            return ()
