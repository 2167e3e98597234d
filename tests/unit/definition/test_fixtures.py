"""The hand-written examples: what is valid loads and comes back the same; what is not is refused by place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from orbit_sdk.definition.models import definition_digest, load_definition, read_definition
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.canonical import canonical_bytes, digest
from tests.definition_judge import definition_judge

EXAMPLES = Path(__file__).resolve().parents[3] / "schemas" / "examples" / "definition"
VALID = sorted((EXAMPLES / "valid").glob("*.json"))
INVALID = sorted((EXAMPLES / "invalid").glob("*.json"))


def document(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def judge() -> jsonschema.Draft202012Validator:
    return definition_judge()


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_example_comes_back_as_it_was(path: Path) -> None:
    definition = read_definition(path.read_bytes())
    assert definition.to_json() == document(path)
    assert definition.canonical() == canonical_bytes(document(path))
    assert definition_digest(definition) == digest(document(path))
    assert load_definition(definition.to_json()) == definition


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_example_fits_the_published_schema(
    path: Path, judge: jsonschema.Draft202012Validator
) -> None:
    assert not list(judge.iter_errors(document(path)))


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_example_is_refused_where_it_is_wrong(
    path: Path, judge: jsonschema.Draft202012Validator
) -> None:
    example = document(path)
    with pytest.raises(InvalidArgument) as caught:
        load_definition(example["document"])
    assert example["field"] in [detail.field for detail in caught.value.details]
    assert not judge.is_valid(example["document"])


def test_every_kind_of_node_has_an_example() -> None:
    kinds = {node["kind"] for path in VALID for node in document(path)["nodes"].values()}
    assert kinds == {"TASK", "WAIT", "TIMER", "POLL", "BRANCH", "MERGE", "PARALLEL", "JOIN", "END"}


def test_the_order_of_keys_and_sets_never_changes_a_digest() -> None:
    plain = document(EXAMPLES / "valid" / "task.json")
    turned = dict(reversed(plain.items()))
    turned["handlers"]["letter.print@1"]["errors"].reverse()
    turned["nodes"] = dict(reversed(turned["nodes"].items()))
    assert definition_digest(load_definition(turned)) == definition_digest(load_definition(plain))
    assert list(load_definition(turned).nodes) == sorted(plain["nodes"])


def test_unions_are_sorted_with_null_last() -> None:
    plain = document(EXAMPLES / "valid" / "types.json")
    plain["types"]["Maybe"]["anyOf"].reverse()
    assert load_definition(plain).to_json()["types"]["Maybe"]["anyOf"] == [
        {"type": "string"},
        {"type": "null"},
    ]


def test_whole_numbers_have_one_spelling() -> None:
    plain = document(EXAMPLES / "valid" / "end_succeeded.json")
    plain["nodes"]["done"]["output"] = {"const": [1.0, -0.0, 1e3]}
    assert b'{"const":[1,0,1000]}' in load_definition(plain).canonical()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"schema_version":1,"schema_version":1}', "twice"),
        ('{"schema_version":NaN}', "NaN"),
        ('{"schema_version":1e999}', "too large"),
        ("\ufeff{}", "byte order mark"),
        ('{"title":"\\u0000"}', "NUL"),
        ("[" * 1000, "nested"),
    ],
)
def test_a_text_that_is_not_strict_json_is_refused_before_its_form_is_judged(text: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        read_definition(text)


@pytest.mark.parametrize("field", ["schema_version", "version"])
def test_a_fraction_is_refused_where_an_integer_is_meant(field: str) -> None:
    text = (EXAMPLES / "valid" / "end_succeeded.json").read_text()
    with pytest.raises(InvalidArgument) as caught:
        read_definition(text.replace(f'"{field}": 1', f'"{field}": 1.0'))
    assert caught.value.details[0].field == field


@pytest.mark.parametrize("value", [None, 1, "text", [], [[]]])
def test_a_document_is_an_object(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be an object"):
        load_definition(value)
