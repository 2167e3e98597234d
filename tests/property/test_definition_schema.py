"""The published JSON Schema and the models judge every parsed document alike."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbit_sdk.definition.models import load_definition
from orbit_sdk.errors import InvalidArgument
from tests.definition_judge import definition_judge

EXAMPLES = Path(__file__).resolve().parents[2] / "schemas" / "examples" / "definition"
DOCUMENTS = [json.loads(path.read_text()) for path in sorted((EXAMPLES / "valid").glob("*.json"))]
JUDGE = definition_judge()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a document."""
    inner: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = [path] if path else []
    for key, item in inner:
        found += places(item, (*path, key))
    return found


def parts(value: Any) -> list[Any]:
    """Everything inside a document, to be put in other places."""
    inner: Any = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(part for item in inner for part in parts(item))]


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(keys(item) for item in value.values()), set())
    return set().union(*(keys(item) for item in value), set()) if isinstance(value, list) else set()


PARTS = [part for document in DOCUMENTS for part in parts(document)]
KEYS = sorted(set().union(*(keys(document) for document in DOCUMENTS)))
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        10,
        101,
        2**53 - 1,
        0.5,
        "",
        "a",
        "A",
        "input",
        "instance",
        "a.b",
        "a@1",
        "ä",
    ),
    *("REVIEW", "FAIL", "TASK", "END", "BRANCH", "TIMER", "a" * 64, "a" * 201, "a\n", [], {}, [1, 1], [None]),
    *(
        {"next": "a"},
        {"const": 1},
        {"ref": "a"},
        {"type": "string"},
        {"$ref": "#/types/A"},
        {"sensitive": True},
    ),
    *("(?=a)", "[", "^a+$", "#/types/1", "date-time", "ipv4", {"anyOf": [{"type": "null"}, {}]}),
]


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A valid document with a few things replaced, taken out, added or renamed."""
    document = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(document) or [("nodes",)]))
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        thing = copy.deepcopy(draw(st.sampled_from(ODD) | st.sampled_from(PARTS)))
        match draw(st.sampled_from(["replace", "remove", "add", "rename"])):
            case "replace":
                parent[path[-1]] = thing
            case "remove":
                del parent[path[-1]]
            case "add" if isinstance(parent, dict):
                parent[draw(st.sampled_from(KEYS))] = thing
            case "rename" if isinstance(parent, dict):
                parent[draw(st.sampled_from(KEYS) | st.sampled_from(["", "A", "input", "x.y", "a" * 64]))] = (
                    parent.pop(path[-1])
                )
            case _:
                parent.append(thing) if isinstance(parent, list) else None
    return document


def loads(document: Any) -> bool:
    try:
        load_definition(document)
    except InvalidArgument:
        return False
    return True


@given(mutated())
@settings(max_examples=600)
def test_the_schema_and_the_models_judge_alike(document: Any) -> None:
    assert JUDGE.is_valid(document) == loads(document)


@given(mutated())
@settings(max_examples=300)
def test_what_loads_is_in_its_only_form(document: Any) -> None:
    if loads(document):
        definition = load_definition(document)
        again = load_definition(definition.to_json())
        assert again == definition
        assert again.canonical() == definition.canonical()


@given(mutated())
@settings(max_examples=300)
def test_every_refusal_names_a_place_and_a_reason(document: Any) -> None:
    if not loads(document):
        with pytest.raises(InvalidArgument) as caught:
            load_definition(document)
        assert caught.value.details
        for detail in caught.value.details:
            assert detail.field
            assert "<" not in detail.field
            assert detail.reason.strip()
