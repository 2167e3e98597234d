"""Value types: validating, masking, telling unions apart, following names."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_sdk.definition.masking import MASK, compile_mask
from orbit_sdk.definition.unions import discriminator_of, endless_types
from orbit_sdk.definition.validate_value import Problem, compile_validator
from orbit_sdk.definition.value_types import (
    TypeSchema,
    UnionType,
    load_type,
    named_types_of,
    parts_of_type,
    resolve,
    type_to_json,
)
from orbit_sdk.errors import Detail, InvalidArgument

TEXT = {"type": "string"}
NULL = {"type": "null"}


def named(**types: Any) -> dict[str, TypeSchema]:
    return {name: load_type(schema) for name, schema in types.items()}


def misfits(schema: Any, value: Any, **types: Any) -> list[tuple[str, str]]:
    found = compile_validator(load_type(schema), named(**types))(value)
    return [(problem.detail().field, problem.reason) for problem in found]


TREE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/types/Tree"}},
    },
    "required": ["value"],
    "additionalProperties": False,
}
CAT = {
    "type": "object",
    "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
    "required": ["kind"],
}
DOG = {
    "type": "object",
    "properties": {"kind": {"enum": ["dog", "wolf"]}, "name": TEXT},
    "required": ["kind"],
}
PET = {"anyOf": [{"$ref": "#/types/Cat"}, {"$ref": "#/types/Dog"}]}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (TEXT, 1, [("$", "must be a text")]),
        ({"type": "string", "minLength": 2}, "😀", [("$", "is shorter than 2 characters")]),
        ({"type": "string", "maxLength": 1}, "ab", [("$", "is longer than 1 characters")]),
        ({"type": "string", "format": "decimal"}, "1e5", [("$", "is not of format decimal")]),
        ({"type": "string", "pattern": "^a"}, "b", [("$", "does not match ^a")]),
        ({"type": "integer"}, True, [("$", "must be an integer")]),
        ({"type": "integer"}, 1.5, [("$", "must be an integer")]),
        ({"type": "integer"}, 2.0**53, [("$", "lies outside ±(2^53-1)")]),
        ({"type": "integer", "minimum": 2}, 1, [("$", "is less than 2")]),
        ({"type": "integer", "maximum": 2}, 3, [("$", "is more than 2")]),
        ({"type": "integer", "exclusiveMinimum": 2}, 2, [("$", "is not more than 2")]),
        ({"type": "integer", "exclusiveMaximum": 2}, 2, [("$", "is not less than 2")]),
        ({"type": "number", "multipleOf": 0.1}, 0.35, [("$", "is not a multiple of 0.1")]),
        ({"type": "number"}, "1", [("$", "must be a number")]),
        ({"type": "number"}, False, [("$", "must be a number")]),
        ({"type": "boolean"}, 1, [("$", "must be true or false")]),
        (NULL, 0, [("$", "must be null")]),
        ({"enum": [1, "a"]}, "b", [("$", 'must be one of "a", 1')]),
        ({"enum": [1, "a"]}, True, [("$", 'must be one of "a", 1')]),
        ({"const": {"a": 1}}, {"a": 2}, [("$", 'must be {"a":1}')]),
        ({"type": "array", "minItems": 1}, [], [("$", "has fewer than 1 items")]),
        ({"type": "array", "maxItems": 1}, [1, 2], [("$", "has more than 1 items")]),
        (
            {"type": "array", "items": TEXT},
            ["a", 1, 2],
            [("[1]", "must be a text"), ("[2]", "must be a text")],
        ),
        ({"type": "array"}, {}, [("$", "must be an array")]),
        ({"type": "object"}, [], [("$", "must be an object")]),
        ({"type": "object", "additionalProperties": TEXT}, {"a": 1}, [("a", "must be a text")]),
        ({"$ref": "#/types/Tree"}, {"value": 1, "x": 1}, [("x", "is not a field of this object")]),
        (
            {"$ref": "#/types/Tree"},
            {"value": 1, "children": [{"children": [{"value": "a"}]}]},
            [("children[0].value", "is missing"), ("children[0].children[0].value", "must be an integer")],
        ),
        (PET, {"kind": "cat", "lives": "nine"}, [("lives", "must be an integer")]),
        (PET, {"kind": "cow"}, [("kind", 'must be one of "cat", "dog", "wolf"')]),
        (PET, {}, [("kind", "is missing")]),
        (PET, 1, [("$", "must be an object")]),
        ({"anyOf": [TEXT, NULL]}, 1, [("$", "fits none of the types of this union")]),
        ({"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, [1], [("[0]", "must be a text")]),
    ],
)
def test_a_misfit_is_told_with_its_place(schema: Any, value: Any, expected: list[tuple[str, str]]) -> None:
    assert misfits(schema, value, Tree=TREE, Cat=CAT, Dog=DOG) == expected


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, [None, {"a": 1}]),
        ({"type": "integer"}, 1.0),
        ({"type": "integer", "multipleOf": 5}, -10),
        ({"type": "number", "multipleOf": 0.1}, 0.3),
        ({"enum": [1, "a", None]}, 1.0),
        ({"const": None}, None),
        ({"type": "string", "minLength": 1, "maxLength": 1}, "😀"),
        ({"type": "object"}, {"anything": [1]}),
        ({"$ref": "#/types/Tree"}, {"value": 1, "children": [{"value": 2, "children": []}]}),
        (PET, {"kind": "wolf", "more": 1}),
        ({"anyOf": [TEXT, NULL]}, None),
    ],
)
def test_a_value_that_fits_has_no_problems(schema: Any, value: Any) -> None:
    assert misfits(schema, value, Tree=TREE, Cat=CAT, Dog=DOG) == []


def test_problems_are_bounded_and_take_the_place_of_their_value() -> None:
    validate = compile_validator(load_type({"type": "array", "items": TEXT}), {})
    assert len(validate([1] * 1000)) == 50
    assert Problem((0,), "is odd").detail("input", "list") == Detail("input.list[0]", "is odd")


def test_reasons_never_repeat_the_value() -> None:
    for schema in (
        TEXT,
        {"type": "integer"},
        {"enum": ["a", "b"]},
        {"const": "a"},
        {"type": "string", "pattern": "^a"},
    ):
        for value in ("s3cret", ["s3cret"], {"k": "s3cret"}):
            assert "s3cret" not in str(misfits(schema, value))


DEPTH = 30


def nested_unions() -> dict[str, Any]:
    """T30 is one of two objects around T29, and so on down to T0."""
    types: dict[str, Any] = {"T0": {"type": "integer", "sensitive": True}}
    for level in range(1, DEPTH + 1):
        inner = {"$ref": f"#/types/T{level - 1}"}
        plain = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
        noted = {"type": "object", "properties": {"a": inner, "note": TEXT}, "required": ["a"]}
        types[f"T{level}"] = {"anyOf": [plain, noted]}
    return types


def unions_of_unions() -> dict[str, Any]:
    """T30 and U30 are each one of T29 and U29, and so on down to an integer and a text."""
    types: dict[str, Any] = {"T0": {"type": "integer"}, "U0": {**TEXT, "sensitive": True}}
    for level in range(1, DEPTH + 1):
        either = {"anyOf": [{"$ref": f"#/types/T{level - 1}"}, {"$ref": f"#/types/U{level - 1}"}]}
        types |= {f"T{level}": either, f"U{level}": either}
    return types


def test_unions_inside_unions_do_not_double_the_work_with_every_level() -> None:
    value: Any = "no number"
    masked: Any = MASK
    for _ in range(DEPTH):
        value, masked = {"a": value}, {"a": masked}
    place = ".".join("a" * DEPTH)
    deep = {"$ref": f"#/types/T{DEPTH}"}
    assert misfits(deep, value, **nested_unions()) == [(place, "must be an integer")]
    assert compile_mask(load_type(deep), named(**nested_unions()))(value) == masked
    assert misfits(deep, None, **unions_of_unions()) == [("$", "fits none of the types of this union")]
    assert compile_mask(load_type(deep), named(**unions_of_unions()))("secret") == MASK


def test_unknown_and_endless_types_are_refused() -> None:
    loop = {"A": load_type({"$ref": "#/types/B"}), "B": load_type({"anyOf": [{"$ref": "#/types/A"}, NULL]})}
    assert endless_types({**loop, **named(Tree=TREE)}) == ("A", "B")
    for compile_it in (compile_validator, compile_mask):
        with pytest.raises(LookupError, match="type Gone does not exist"):
            compile_it(load_type({"$ref": "#/types/Gone"}), {})
        with pytest.raises(ValueError, match="type A is defined by nothing but itself"):
            compile_it(load_type(TEXT), loop)


def test_following_a_name_ends() -> None:
    types = named(A={"$ref": "#/types/B"}, B=TEXT, C={"$ref": "#/types/D"}, D={"$ref": "#/types/C"})
    assert resolve(types["A"], types) == types["B"]
    with pytest.raises(LookupError, match="defined by itself"):
        resolve(types["C"], types)
    with pytest.raises(LookupError, match="does not exist"):
        resolve(load_type({"$ref": "#/types/Gone"}), types)


def test_the_parts_and_the_names_of_a_type_are_known_with_their_paths() -> None:
    schema = load_type(
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"$ref": "#/types/A"}}},
            "additionalProperties": {"anyOf": [{"$ref": "#/types/B"}, NULL]},
        }
    )
    assert [path for path, _ in parts_of_type(schema)] == [("properties", "a"), ("additionalProperties",)]
    assert list(named_types_of(schema)) == [
        (("properties", "a", "items"), "A"),
        (("additionalProperties", "anyOf", 0), "B"),
    ]
    assert list(parts_of_type(load_type({"type": "array"}))) == []
    assert type_to_json(load_type(TREE)) == TREE


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ([CAT, DOG], "kind"),
        ([CAT, TEXT], None),
        ([CAT, {**CAT, "required": ["kind", "lives"]}], None),
        ([CAT, {"type": "object"}], None),
        ([CAT, {"type": "object", "properties": {"kind": TEXT}, "required": ["kind"]}], None),
        ([CAT, {"type": "object", "required": ["kind"]}], None),
    ],
)
def test_a_union_is_told_apart_by_a_required_constant(members: list[Any], name: str | None) -> None:
    union = load_type({"anyOf": members})
    assert isinstance(union, UnionType)
    found = discriminator_of(union, {})
    assert (found.name if found else None) == name


def test_masks_hide_what_is_marked_and_leave_the_rest() -> None:
    types = named(
        Account={
            "type": "object",
            "properties": {
                "iban": {"type": "string", "sensitive": True},
                "owner": {"$ref": "#/types/Owner"},
                "tags": {"type": "array", "items": {"anyOf": [{"type": "string", "sensitive": True}, NULL]}},
                "next": {"anyOf": [{"$ref": "#/types/Account"}, NULL]},
                "free": TEXT,
            },
            "additionalProperties": {"type": "integer", "sensitive": True},
        },
        Owner={"type": "object", "properties": {"name": TEXT}},
    )
    mask = compile_mask(load_type({"$ref": "#/types/Account"}), types)
    value = {
        "iban": "DE1",
        "owner": {"name": "ann"},
        "tags": ["a", None],
        "next": {"iban": "DE2", "next": None},
        "free": "x",
        "more": 7,
    }
    assert mask(value) == {
        "iban": MASK,
        "owner": {"name": "ann"},
        "tags": [MASK, MASK],
        "next": {"iban": MASK, "next": None},
        "free": "x",
        "more": MASK,
    }
    assert value["iban"] == "DE1"
    assert mask("not an object") == "not an object"


def test_a_type_without_marks_hides_nothing() -> None:
    value = {"value": 1, "children": [{"value": 2}], "other": [1]}
    assert compile_mask(load_type({"$ref": "#/types/Tree"}), named(Tree=TREE))(value) == value
    assert compile_mask(load_type({"type": "array", "items": TEXT}), {})(value) is value
    masked = compile_mask(load_type({"type": "array", "items": {**TEXT, "sensitive": True}}), {})
    assert masked({"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array", "prefixItems": []}, "tuples"),
        ({"type": "array", "uniqueItems": True}, "sets"),
        ({"contentEncoding": "base64"}, "bytes"),
        ({"allOf": [], "title": "x"}, "composed"),
        ({"type": "string", "format": "ipv4"}, "is not a known format; known are"),
        ({"type": "bytes"}, "has the type 'bytes', which is not known"),
        ({"type": ["string", "null"]}, "use anyOf"),
        ({"minLength": 1}, "has no type"),
        ({"type": "string", "minLength": -1}, "greater than or equal to 0"),
        ({"type": "string", "maxLength": 1.5}, "must be an integer"),
        ({"type": "number", "minimum": "1"}, "must be a number"),
        ({"type": "object", "additionalProperties": True}, "must be false"),
        ({"type": "object", "properties": []}, "must be an object"),
        ({"type": "object", "required": "a"}, "must be an array"),
        ({"type": "string", "pattern": "a" * 513}, "at most 512"),
        ({"type": "string", "sensitive": 1}, "true or false"),
        ({"$ref": "Tree"}, "does not match"),
        ("string", "must be a type"),
    ],
)
def test_what_is_outside_the_subset_is_refused_by_name(schema: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load_type(schema)
    assert reason in caught.value.details[0].reason
