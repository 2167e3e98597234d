"""The compiled validator gives the verdicts of the jsonschema library, for every type and value."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orbit_sdk.definition.formats import FORMAT_RULES
from orbit_sdk.definition.normalise import normalise_schema
from orbit_sdk.definition.validate_value import compile_validator
from orbit_sdk.definition.value_types import load_type, type_to_json
from tests.definition_judge import Judge, formats

WORDS = st.sampled_from(
    ["a", "b", "ab", "abc", "", "1", "1.5", "2026-09-18", "2026-09-18T08:00:00Z", "P1D", "a@b", "a:b"]
)
NUMBERS = st.integers(-6, 6) | st.sampled_from([0.5, 1.0, -2.0, 2.5])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abk"), inner, max_size=3),
    max_leaves=8,
)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def merged(kind: str, fields: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return fields.map(lambda more: {"type": kind, **more})


BOUNDS = {name: st.integers(-4, 4) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")}
LEAVES = (
    st.just({})
    | merged("string", some(minLength=st.integers(0, 3), maxLength=st.integers(0, 3)))
    | merged("string", some(pattern=st.sampled_from(["^a", "b$", "^(a|b)+$", "[0-9]"])))
    | merged("string", some(format=st.sampled_from(sorted(FORMAT_RULES))))
    | merged("integer", some(**BOUNDS, multipleOf=st.integers(1, 3)))
    | merged("number", some(**BOUNDS, multipleOf=st.sampled_from([0.5, 1, 2])))
    | st.sampled_from(
        [{"type": "boolean"}, {"type": "null"}, {"$ref": "#/types/Tree"}, {"$ref": "#/types/Pet"}]
    )
    | VALUES.map(lambda value: {"const": value})
    | st.lists(VALUES, min_size=1, max_size=4).map(lambda values: {"enum": values})
)
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: (
        merged("array", some(items=inner, minItems=st.integers(0, 2), maxItems=st.integers(0, 3)))
        | merged(
            "object",
            some(
                properties=st.dictionaries(st.sampled_from("abk"), inner, max_size=3),
                required=st.lists(st.sampled_from("abk"), unique=True, max_size=2),
                additionalProperties=st.just(value=False) | inner,
            ),
        )
        | st.lists(inner, min_size=1, max_size=3).map(lambda members: {"anyOf": members})
    ),
    max_leaves=6,
)
TYPES: dict[str, Any] = {
    "Tree": {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"anyOf": [{"$ref": "#/types/Tree"}, {"type": "null"}]},
        },
        "required": ["a"],
    },
    "Cat": {
        "type": "object",
        "properties": {"k": {"const": "a"}, "a": {"type": "integer"}},
        "required": ["k"],
    },
    "Dog": {
        "type": "object",
        "properties": {"k": {"enum": ["b", 1]}},
        "required": ["k"],
        "additionalProperties": False,
    },
    "Pet": {"anyOf": [{"$ref": "#/types/Cat"}, {"$ref": "#/types/Dog"}]},
}
NAMED = {name: load_type(schema) for name, schema in TYPES.items()}
FORMATS = formats()


@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=8))
@settings(max_examples=500)
def test_the_validator_agrees_with_an_independent_judge(schema: Any, values: list[Any]) -> None:
    normal = load_type(normalise_schema(schema))
    validate = compile_validator(normal, NAMED)
    # The judge reads the schema as it was before it was normalised.
    judge = Judge({**schema, "types": TYPES}, format_checker=FORMATS)
    for value in values:
        assert (not validate(value)) == judge.is_valid(value)


@given(SCHEMAS)
def test_the_normal_form_is_stable(schema: Any) -> None:
    normal = load_type(normalise_schema(schema))
    assert load_type(type_to_json(normal)) == normal
    assert load_type(normalise_schema(type_to_json(normal))) == normal
