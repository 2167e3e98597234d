"""Hides what a type marks as sensitive, for readers who may not see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from orbit_sdk.definition.unions import endless_types
from orbit_sdk.definition.value_types import (
    ArrayType,
    ObjectType,
    RefType,
    TypeSchema,
    UnionType,
    parts_of_type,
)
from orbit_sdk.values.json_strict import Json

__all__ = ["MASK", "Mask", "compile_mask"]

MASK: Final = "***"
"""What stands where a value was hidden, whatever its type."""

Mask: TypeAlias = Callable[[Json], Json]


def compile_mask(schema: TypeSchema, types: Mapping[str, TypeSchema]) -> Mask:
    """A function from a value to the same value with every sensitive part replaced by MASK.

    In a union, what any member marks is hidden: showing too little is the safe side. The value need
    not fit its type. LookupError when a `$ref` names no type; ValueError when a type is nothing but itself.
    """
    if endless := endless_types(types):
        raise ValueError(f"type {endless[0]} is defined by nothing but itself")
    return _Marks(types).mask_of([schema])


def _shown(value: Json) -> Json:
    return value


def _hidden(_value: Json) -> Json:
    return MASK


class _Marks:
    """Where the marks are. What hides nothing is `_shown`, so that whole values are passed on untouched."""

    def __init__(self, types: Mapping[str, TypeSchema]) -> None:
        self._types = types
        self._places: dict[frozenset[int], _Place] = {}

    def mask_of(self, schemas: Iterable[TypeSchema]) -> Mask:
        """Hides in one value what any of these types marks."""
        flat = self._flat([schema for schema in schemas if self._is_marked(schema)])
        if any(schema.sensitive for schema in flat):
            return _hidden
        if not flat:
            return _shown
        key = frozenset(id(schema) for schema in flat)
        if key not in self._places:
            self._places[key] = _Place(self, flat)
        return self._places[key]

    def _is_marked(self, schema: TypeSchema) -> bool:
        """Whether anything that the type leads to is sensitive."""
        return True in [one.sensitive for one in self._reached([schema], parts=True)]

    def _flat(self, schemas: list[TypeSchema]) -> list[TypeSchema]:
        """The types of one place: names followed, unions opened. A sensitive name or union is itself one."""
        reached = self._reached(schemas, parts=False)
        return [one for one in reached if one.sensitive or not isinstance(one, RefType | UnionType)]

    def _reached(self, schemas: list[TypeSchema], *, parts: bool) -> Iterable[TypeSchema]:
        """Each type once. LookupError when a `$ref` names no type."""
        seen: set[int] = set()
        waiting = list(schemas)
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            if isinstance(one, RefType):
                if one.target not in self._types:
                    raise LookupError(f"type {one.target} does not exist")
                waiting.append(self._types[one.target])
            elif parts or isinstance(one, UnionType):
                waiting.extend(part for _, part in parts_of_type(one))


class _Place:
    """Masks a value once, under all the types that it may be of: one type after the other, unions inside
    unions would double the work with every level. What is inside is worked out when a value has it.
    """

    def __init__(self, marks: _Marks, types: Iterable[TypeSchema]) -> None:
        self._marks = marks
        self._objects = [one for one in types if isinstance(one, ObjectType)]
        self._arrays = [one for one in types if isinstance(one, ArrayType)]
        self._named = frozenset(name for one in self._objects for name in one.fields)
        self._inside: dict[str | None, Mask] = {}
        self._each: Mask | None = None

    def __call__(self, value: Json) -> Json:
        if isinstance(value, dict) and self._objects:
            return {name: self._field(name if name in self._named else None)(value[name]) for name in value}
        if isinstance(value, list) and self._arrays:
            each = self._item()
            return [each(item) for item in value]
        return value

    def _field(self, name: str | None) -> Mask:
        """Of a property; None stands for all that no type names."""
        if name not in self._inside:
            found = (_part(one, name) for one in self._objects)
            self._inside[name] = self._marks.mask_of(part for part in found if part is not None)
        return self._inside[name]

    def _item(self) -> Mask:
        if self._each is None:
            self._each = self._marks.mask_of(one.items for one in self._arrays if one.items is not None)
        return self._each


def _part(schema: ObjectType, name: str | None) -> TypeSchema | None:
    if name is not None and name in schema.fields:
        return schema.fields[name]
    return None if schema.additional is False else schema.additional
