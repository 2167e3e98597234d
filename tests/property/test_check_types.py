"""What is said about types is what a JSON Schema validator says about every value of a small world."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orbit_sdk.check.fits import Fit
from orbit_sdk.check.narrow import NOTHING, certain
from orbit_sdk.check.view import View
from orbit_sdk.definition.evaluate import Misfit, read_path
from orbit_sdk.definition.expressions import Ref
from orbit_sdk.definition.value_types import TypeSchema, load_type
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.limits import DEFAULT_LIMITS
from tests.unit.check.documents import Document, definition, end

SCALARS: tuple[Any, ...] = (None, True, False, -1, 0, 1, 2, 1.5, "", "a", "ab")
FEW = (None, True, 0, 1, "a", {"a": 1}, [1])
ABSENT = object()


def objects(names: str, values: tuple[Any, ...]) -> list[Document]:
    chosen = product((ABSENT, *values), repeat=len(names))
    return [{n: v for n, v in zip(names, row, strict=True) if v is not ABSENT} for row in chosen]


WORLD: tuple[Any, ...] = (
    *SCALARS,
    *objects("ab", (*FEW, 2, "")),
    *objects("c", FEW),
    *([], *([one] for one in SCALARS), *([one, other] for one in FEW for other in FEW)),
    {"value": 1, "next": None},
    {"value": 1, "next": {"value": 1, "next": None}},
    {"value": "a", "next": {"value": 1, "next": None}},
    {"value": 1},
)
"""Every value the types below are tried on."""

TYPES: Document = {
    "List": {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "next": {"anyOf": [{"$ref": "#/types/List"}, {"type": "null"}]},
        },
        "required": ["next", "value"],
    },
    "Loose": {
        "type": "object",
        "properties": {"value": {}, "next": {"anyOf": [{"$ref": "#/types/Loose"}, {"type": "null"}]}},
        "required": ["next"],
    },
    "Maybe": {"anyOf": [{"$ref": "#/types/List"}, {"const": 1}]},
}


def bounds(*names: str) -> st.SearchStrategy[Document]:
    return st.dictionaries(st.sampled_from(names), st.integers(-1, 2), max_size=2)


def sizes(*names: str) -> st.SearchStrategy[Document]:
    return st.dictionaries(st.sampled_from(names), st.integers(0, 2), max_size=2)


NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")

leaves: st.SearchStrategy[Document] = st.one_of(
    st.sampled_from(
        [{}, {"type": "null"}, {"type": "boolean"}, *({"$ref": f"#/types/{name}"} for name in TYPES)]
    ),
    st.sampled_from([*SCALARS, {"a": 1}, [1]]).map(lambda value: {"const": value}),
    st.lists(st.sampled_from(SCALARS), min_size=2, max_size=3, unique_by=repr).map(
        lambda them: {"enum": them}
    ),
    st.tuples(st.sampled_from(["integer", "number"]), bounds(*NUMERIC)).map(lambda p: {"type": p[0], **p[1]}),
    st.sampled_from([{"type": "integer", "multipleOf": 2}, {"type": "number", "multipleOf": 0.5}]),
    sizes("minLength", "maxLength").map(lambda more: {"type": "string", **more}),
    st.just({"type": "string", "pattern": "^a"}),
)


def composed(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
    arrays = st.tuples(st.none() | inner, sizes("minItems", "maxItems")).map(
        lambda pair: {"type": "array", **({} if pair[0] is None else {"items": pair[0]}), **pair[1]}
    )
    records = st.tuples(
        st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        st.sets(st.sampled_from("ab")),
        st.one_of(st.none(), st.just(value=False), inner),
    ).map(lambda parts: made_record(*parts))
    unions = st.lists(inner, min_size=2, max_size=3).map(lambda members: {"anyOf": members})
    return st.one_of(arrays, records, unions)


def made_record(fields: Document, required: set[str], additional: Document | bool | None) -> Document:
    found: Document = {"type": "object"}
    if fields:
        found["properties"] = fields
    if required:
        found["required"] = sorted(required)
    return found if additional is None else {**found, "additionalProperties": additional}


schemas = st.recursive(leaves, composed, max_leaves=5)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Document, Document]:
    """Two types, often near each other."""
    first = draw(schemas)
    other = draw(st.one_of(schemas, st.just(first), st.just({"anyOf": [first, {"type": "null"}]})))
    pair = (first, other)
    return pair if draw(st.booleans()) else (pair[1], pair[0])


VIEW = View(definition({"e": end()}, types=TYPES), DEFAULT_LIMITS)


def loaded(schema: Document) -> TypeSchema | None:
    try:
        return load_type(schema)
    except InvalidArgument:
        return None


def judge(schema: Document) -> Draft202012Validator:
    return Draft202012Validator({"types": TYPES, "allOf": [schema]})


@given(pairs())
def test_always_and_never_hold_for_every_value(pair: tuple[Document, Document]) -> None:
    source, target = loaded(pair[0]), loaded(pair[1])
    if source is None or target is None:
        return
    fit = VIEW.fitter.fit(source, target)
    event(fit)
    first, second = judge(pair[0]), judge(pair[1])
    verdicts = {second.is_valid(value) for value in WORLD if first.is_valid(value)}
    if fit is Fit.ALWAYS:
        assert verdicts <= {True}
    elif fit is Fit.NEVER:
        assert verdicts <= {False}


@given(schemas)
def test_every_type_fits_itself(schema: Document) -> None:
    one, again = loaded(schema), loaded(schema)
    if one is not None and again is not None:
        assert VIEW.fitter.fit(one, again) is Fit.ALWAYS


@given(schemas, st.lists(st.sampled_from(["a", "b", "value", "next"]), min_size=1, max_size=2))
def test_what_a_path_reads_is_of_the_type_that_was_told(schema: Document, path: list[str]) -> None:
    if loaded(schema) is None:
        return
    view = View(definition({"e": end()}, types=TYPES, input=schema), DEFAULT_LIMITS)
    ref = Ref(ref="input", path=tuple(path))
    reading, sure = view.typer.read(ref, NOTHING), view.typer.read(ref, certain(ref))
    valid = judge(schema)
    for value in WORLD:
        if reading.unknown or not valid.is_valid(value):
            continue
        try:
            found = read_path(value, path)
        except Misfit:
            assert reading.through is not None
            continue
        assert view.accepts(reading.type, found)
        assert found is None or sure.unknown or view.accepts(sure.type, found)
