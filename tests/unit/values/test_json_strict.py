"""What comes in as JSON means one thing to every reader, or is refused with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbit_sdk.errors import InvalidArgument, PayloadTooLarge
from orbit_sdk.values.json_strict import parse_json
from orbit_sdk.values.paths import field_path

MAX = 10_000_000


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ('{"a":{"b":1,"b":1}}', "a", 'has the key "b" twice'),
        ('{"a":[1,NaN]}', "a[1]", "is NaN"),
        ("[Infinity]", "[0]", "is Infinity"),
        ("[-Infinity]", "[0]", "is -Infinity"),
        ("[1e999]", "[0]", "is too large for a double"),
        ("9007199254740992", "$", "is a whole number outside"),
        ("-9007199254740992", "$", "is a whole number outside"),
        ('{"n":1e20}', "n", "is a whole number outside"),
        ('{"n":' + "9" * 5000 + "}", "n", "is a whole number outside"),
        ('{"a b":"\\ud800"}', '["a b"]', "holds a lone surrogate"),
        ('["\\udc00x"]', "[0]", "holds a lone surrogate"),
        ('{"\\uDBFF":1}', "$", "has a key that holds a lone surrogate"),
        ('{"a":"x\\u0000"}', "a", "holds a NUL character"),
        ('{"\\u0000":1}', "$", "has a key that holds a NUL character"),
        ('{"' + "k" * 129 + '":1}', "$", "has a key longer than 128 characters"),
        ("\ufeff{}", "$", "begins with a byte order mark"),
        ("{'a':1}", "$", "is not JSON"),
        ("", "$", "is not JSON"),
        ("[1] 2", "$", "is not JSON"),
        ("[" * 100_000, "$", "is nested deeper than 32"),
        ("[" * 33 + "]" * 33, "[0]" * 32, "is nested too deeply"),
        ('{"a":' * 33 + "1" + "}" * 33, ".".join("a" * 32), "is nested too deeply"),
    ],
)
def test_ambiguous_json_is_refused_with_its_place(text: str, field: str, reason: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_json(text, max_bytes=MAX)
    assert caught.value.details[0].field == field
    assert reason in caught.value.details[0].reason


def test_all_findings_come_at_once() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_json('{"a":NaN,"b":["\\ud800",{"c":1,"c":1e999}]}', max_bytes=MAX)
    assert [detail.field for detail in caught.value.details] == ["a", "b[0]", "b[1]", "b[1].c"]


def test_the_number_of_findings_is_bounded() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_json("[" + ",".join(["NaN"] * 1000) + "]", max_bytes=MAX)
    assert len(caught.value.details) == 50


def test_the_size_counts_bytes_of_utf8() -> None:
    assert parse_json('"äöü"', max_bytes=8) == "äöü"
    with pytest.raises(PayloadTooLarge):
        parse_json('"äöü"', max_bytes=7)
    with pytest.raises(PayloadTooLarge):
        parse_json('"äöü"'.encode(), max_bytes=7)


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="is not UTF-8"):
        parse_json(b'"\xff"', max_bytes=MAX)


def test_a_python_text_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="lone surrogate"):
        parse_json('"\ud800"', max_bytes=MAX)


def test_thirty_two_levels_and_the_largest_integers_are_fine() -> None:
    parse_json("[" * 32 + "]" * 32, max_bytes=MAX)
    assert parse_json("[9007199254740991,-9007199254740991]", max_bytes=MAX) == [2**53 - 1, 1 - 2**53]


def test_escaped_pairs_make_one_character() -> None:
    assert parse_json('"\\ud83d\\ude00"', max_bytes=MAX) == "😀"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(1 - 2**53, 2**53 - 1)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_ordinary_json_reads_as_the_standard_library_reads_it(value: object) -> None:
    text = json.dumps(value)
    assert parse_json(text, max_bytes=MAX) == json.loads(text)


def test_paths_quote_what_is_not_a_plain_word() -> None:
    assert field_path(()) == "$"
    assert field_path(("handlers", "job.submit@1", "errors", 0)) == 'handlers["job.submit@1"].errors[0]'
