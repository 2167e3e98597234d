"""Types of two documents compared with each other, though both may use one name for different things."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from orbit_sdk.check.fits import Fit, Fitter
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.validate_value import compile_validator
from orbit_sdk.definition.value_types import TypeSchema, load_type
from orbit_sdk.values.json_strict import Json


class TypePair:
    """Judges types of a definition before and after a change."""

    def __init__(self, before: Definition, after: Definition) -> None:
        self._names = {
            side: {name: f"{side}{index}" for index, name in enumerate(definition.types)}
            for side, definition in (("Before", before), ("After", after))
        }
        self._definitions = {"Before": before, "After": after}

    def before(self, schema: TypeSchema) -> TypeSchema:
        """A type of the old document, with its names made unmistakable."""
        return self._renamed(schema, "Before")

    def after(self, schema: TypeSchema) -> TypeSchema:
        """A type of the new document, with its names made unmistakable."""
        return self._renamed(schema, "After")

    def fit(self, source: TypeSchema, target: TypeSchema) -> Fit:
        """How the values of one stand to the other; both come from `before` or `after`."""
        return self._fitter.fit(source, target)

    def same(self, old: TypeSchema, new: TypeSchema) -> bool:
        """Whether a type of the old and one of the new document hold the same values, as far as provable."""
        left, right = self.before(old), self.after(new)
        return self.fit(left, right) is Fit.ALWAYS and self.fit(right, left) is Fit.ALWAYS

    @cached_property
    def _types(self) -> Mapping[str, TypeSchema]:
        return {
            self._names[side][name]: self._renamed(schema, side)
            for side, definition in self._definitions.items()
            for name, schema in definition.types.items()
        }

    @cached_property
    def _fitter(self) -> Fitter:
        return Fitter(self._types, self._accepts)

    def _accepts(self, schema: TypeSchema, value: Json) -> bool:
        return not compile_validator(schema, self._types)(value)

    def _renamed(self, schema: TypeSchema, side: str) -> TypeSchema:
        return load_type(_rename(schema.model_dump(by_alias=True, exclude_unset=True), self._names[side]))


def _rename(value: Json, names: Mapping[str, str]) -> Json:
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            name = target.removeprefix("#/types/")
            return {**value, "$ref": f"#/types/{names.get(name, name)}"}
        constant = ("const", "enum")
        return {key: item if key in constant else _rename(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rename(item, names) for item in value]
    return value
