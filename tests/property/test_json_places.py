"""The place of a part of a JSON document is where its key, or the item itself, stands in the text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orbit_sdk.cli.json_places import json_places
from orbit_sdk.values.paths import PathPart, field_path

KEYS = st.text(max_size=4)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def parts(value: Any, path: tuple[PathPart, ...] = ()) -> list[tuple[tuple[PathPart, ...], Any]]:
    found: list[tuple[tuple[PathPart, ...], Any]] = [(path, value)]
    if isinstance(value, dict):
        for key, item in value.items():
            found += parts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += parts(item, (*path, index))
    return found


@settings(max_examples=300)
@given(VALUES, st.sampled_from([None, 1, 2]), st.booleans())
def test_every_part_is_found_where_it_stands(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    lines = [line.encode() for line in text.split("\n")]
    places = json_places(text, "a.json")
    for path, item in parts(value):
        place = places[field_path(path)]
        rest = lines[place.line - 1][place.column - 1 :].decode()
        if not path:
            assert (place.line, place.column) == (1, 1)
        elif isinstance(path[-1], str):
            assert rest.startswith(json.dumps(path[-1], ensure_ascii=ascii_only))
        elif not isinstance(item, dict | list):
            assert rest.startswith(json.dumps(item, ensure_ascii=ascii_only))
        else:
            assert rest[0] in "{["


@settings(max_examples=300)
@given(st.text(alphabet='{}[]:," ab1\\\n', max_size=60))
def test_a_text_that_is_no_json_never_crashes_it(text: str) -> None:
    assert json_places(text, "a.json")["$"].line == 1
