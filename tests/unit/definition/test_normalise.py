"""Ordinary JSON Schema comes into the one normal form."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from orbit_sdk.definition.normalise import normalise_schema, normalise_types
from orbit_sdk.definition.value_types import load_type, type_to_json
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.canonical import canonical_json

TEXT = {"type": "string"}
NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "normal"),
    [
        (True, {}),
        ({"title": "A", "description": "b", "default": 1, "type": "integer"}, {"type": "integer"}),
        ({"$ref": "#/$defs/A"}, {"$ref": "#/types/A"}),
        ({"allOf": [{"$ref": "#/$defs/A"}], "description": "b"}, {"$ref": "#/types/A"}),
        ({"allOf": [TEXT], "sensitive": True}, {"type": "string", "sensitive": True}),
        ({"oneOf": [TEXT, NULL], "discriminator": {"propertyName": "k"}}, {"anyOf": [TEXT, NULL]}),
        ({"anyOf": [TEXT, {"anyOf": [NULL, TEXT]}]}, {"anyOf": [TEXT, NULL]}),
        ({"anyOf": [TEXT, TEXT], "sensitive": True}, {"type": "string", "sensitive": True}),
        ({"type": "string", "enum": ["a", "b", 1]}, {"enum": ["a", "b"]}),
        ({"type": "string", "enum": ["a"]}, {"const": "a"}),
        ({"type": "integer", "const": 1}, {"const": 1}),
        ({"enum": [1, 1.0, 2]}, {"enum": [1, 2]}),
        (
            {"type": ["string", "null", "array"], "minLength": 1, "minItems": 2},
            {"anyOf": [{"type": "string", "minLength": 1}, NULL, {"type": "array", "minItems": 2}]},
        ),
        ({"type": ["string"], "sensitive": True}, {"type": "string", "sensitive": True}),
        ({"type": "object", "properties": {}, "required": []}, {"type": "object"}),
        ({"type": "object", "additionalProperties": True}, {"type": "object"}),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "additionalProperties": False},
        ),
        ({"type": "object", "additionalProperties": {}}, {"type": "object"}),
        ({"type": "array", "items": {"title": "x"}, "minItems": 0}, {"type": "array"}),
        ({"type": "string", "minLength": 0}, TEXT),
        (
            {"type": "number", "minimum": 1.0, "maximum": 2.5},
            {"type": "number", "minimum": 1, "maximum": 2.5},
        ),
        ({"type": "string", "maxLength": 2.0}, {"type": "string", "maxLength": 2}),
    ],
)
def test_a_schema_has_one_normal_form(schema: Any, normal: Any) -> None:
    assert canonical_json(normalise_schema(schema)) == canonical_json(normal)
    load_type(normalise_schema(schema))


@pytest.mark.parametrize(
    ("kinds", "values", "left"),
    [
        ("null", [None, 0], None),
        ("boolean", [True, 1], True),
        ("integer", [1, 1.5, True], 1),
        ("number", [1.5, "a"], 1.5),
        ("array", [[], {}], []),
        ("object", [[], {}], {}),
        (["string"], ["a", None], "a"),
    ],
)
def test_an_enum_keeps_the_values_of_its_type(kinds: Any, values: list[Any], left: Any) -> None:
    assert normalise_schema({"type": kinds, "enum": values}) == {"const": left}


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}},
            "properties.a.uniqueItems",
        ),
        ({"oneOf": [TEXT, NULL]}, "$"),
        ({"allOf": [TEXT, NULL]}, "$"),
        ({"$defs": {"A": {"type": "array", "prefixItems": []}}, "$ref": "#/$defs/A"}, "types.A.prefixItems"),
        ({"$defs": {"A": {"not": {}}}, **TEXT}, "types.A"),
        ({"type": "array", "items": False}, "items"),
        ({"type": "object", "properties": {"a": False}}, "properties.a"),
        ({"type": ["string", 5]}, "anyOf[1]"),
        ({"enum": []}, "enum"),
        ({"anyOf": [TEXT], "minLength": 2}, "anyOf"),
        ({"anyOf": 3}, "anyOf"),
    ],
)
def test_what_has_another_meaning_is_still_refused_by_name(schema: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        normalise_types(schema)
    assert field in [detail.field for detail in caught.value.details]


class Cat(BaseModel):
    """A docstring that must not reach a digest."""

    kind: Literal["cat"]
    lives: Annotated[int, Field(gt=0, description="neither must this")] = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    friend: Dog | None = None


class Home(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]
    mood: Literal["good", "bad"] | None
    prices: dict[str, float]


def test_models_of_pydantic_come_out_in_normal_form() -> None:
    found = normalise_types(TypeAdapter(Home).json_schema())
    assert sorted(found.types) == ["Cat", "Dog"]
    assert type_to_json(found.types["Cat"]) == {
        "type": "object",
        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer", "exclusiveMinimum": 0}},
        "required": ["kind"],
    }
    assert type_to_json(found.root)["properties"] == {
        "pets": {"type": "array", "items": {"anyOf": [{"$ref": "#/types/Cat"}, {"$ref": "#/types/Dog"}]}},
        "mood": {"anyOf": [{"enum": ["bad", "good"]}, {"type": "null"}]},
        "prices": {"type": "object", "additionalProperties": {"type": "number"}},
    }


def test_the_normal_form_of_a_normal_form_is_itself() -> None:
    found = normalise_types(TypeAdapter(Home).json_schema())
    for schema in (found.root, *found.types.values()):
        assert load_type(normalise_schema(type_to_json(schema))) == schema
