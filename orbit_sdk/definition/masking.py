"""Hides what a type marks as sensitive, for readers who may not see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from orbit_sdk.definition.unions import endless_types
from orbit_sdk.definition.value_types import ArrayType, ObjectType, RefType, TypeSchema, UnionType
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
    mask = _Compiler(types).mask_of(schema)
    return mask or _shown


def _shown(value: Json) -> Json:
    return value


def _hidden(_value: Json) -> Json:
    return MASK


class _Compiler:
    """None stands for a type that hides nothing, so that whole values are passed on untouched."""

    def __init__(self, types: Mapping[str, TypeSchema]) -> None:
        self._types = types
        if endless := endless_types(types):
            raise ValueError(f"type {endless[0]} is defined by nothing but itself")
        self._named: dict[str, Mask | None] = {}

    def mask_of(self, schema: TypeSchema) -> Mask | None:
        if schema.sensitive:
            return _hidden
        match schema:
            case RefType():
                return self._named_mask(schema.target)
            case ObjectType():
                return self._object(schema)
            case ArrayType(items=items) if items is not None:
                return _each(self.mask_of(items))
            case UnionType(any_of=members):
                masks = [mask for member in members if (mask := self.mask_of(member)) is not None]
                return _all_of(masks) if masks else None
            case _:
                return None

    def _named_mask(self, name: str) -> Mask | None:
        if name not in self._named:
            if name not in self._types:
                raise LookupError(f"type {name} does not exist")
            # A recursive mention is looked up when a value is masked; by then the mask is known.

            def later(value: Json) -> Json:
                return (self._named[name] or _shown)(value)

            self._named[name] = later
            self._named[name] = self.mask_of(self._types[name])
        return self._named[name]

    def _object(self, schema: ObjectType) -> Mask | None:
        found = {name: self.mask_of(part) for name, part in schema.fields.items()}
        masks = {name: mask for name, mask in found.items() if mask is not None}
        extra = None
        if schema.additional is not None and schema.additional is not False:
            extra = self.mask_of(schema.additional)
        if not masks and extra is None:
            return None

        def mask(value: Json) -> Json:
            if not isinstance(value, dict):
                return value
            return {
                name: (masks.get(name) or (_shown if name in found else extra) or _shown)(item)
                for name, item in value.items()
            }

        return mask


def _each(mask: Mask | None) -> Mask | None:
    if mask is None:
        return None
    return lambda value: [mask(item) for item in value] if isinstance(value, list) else value


def _all_of(masks: list[Mask]) -> Mask:
    def mask(value: Json) -> Json:
        for one in masks:
            value = one(value)
        return value

    return mask
