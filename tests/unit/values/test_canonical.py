"""Canonical JSON: hand-made vectors of every rule of RFC 8785."""

from __future__ import annotations

import hashlib
import math

import pytest

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.canonical import canonical_json, digest, same_json


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (1.25e-9, "1.25e-9"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456789012345680000.0, "123456789012345680000"),
        (0.1, "0.1"),
        (100.25, "100.25"),
        (1e16, "10000000000000000"),
        (9007199254740991, "9007199254740991"),
    ],
)
def test_numbers_are_written_as_ecmascript_writes_them(number: float, text: str) -> None:
    assert canonical_json(number) == text
    assert canonical_json([number]) == f"[{text}]"


def test_keys_are_sorted_by_utf16_units() -> None:
    value = {"\ufb33": 1, "\U0001f600": 2, "é": 3, "1": 4, "": 5, "\r": 6, "10": 7}
    assert canonical_json(value) == '{"":5,"\\r":6,"1":4,"10":7,"é":3,"\U0001f600":2,"\ufb33":1}'


def test_texts_escape_only_what_must_be_escaped() -> None:
    assert canonical_json('\u0001\b\t\n\f\r"\\/\x7f\u2028é') == '"\\u0001\\b\\t\\n\\f\\r\\"\\\\/\x7f\u2028é"'


def test_containers_have_no_spaces_and_null_is_a_value() -> None:
    assert canonical_json({"b": [1, {}, [], None, True, False], "a": {"x": 1.5}}) == (
        '{"a":{"x":1.5},"b":[1,{},[],null,true,false]}'
    )


def test_texts_that_only_look_like_numbers_or_null_are_kept() -> None:
    assert (
        canonical_json(["a,1.5", "[2e7", ":null", {"x,null": 0}]) == '["a,1.5","[2e7",":null",{"x,null":0}]'
    )


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        [math.inf],
        {"a": -math.inf},
        2**53,
        -(2**53),
        2**70,
        "\ud800",
        {"\ud800": 1},
        b"bytes",
        {1: 2},
        {"a": object()},
        [[None, math.nan]],
    ],
)
def test_what_json_cannot_carry_exactly_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgument):
        canonical_json(value)  # type: ignore[arg-type]


def test_a_value_without_end_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidArgument, match="nested"):
        canonical_json(endless)  # type: ignore[arg-type]


def test_equality_is_by_meaning() -> None:
    assert same_json({"a": 1, "b": 2.0}, {"b": 2, "a": 1.0})
    assert not same_json(1, "1")
    assert not same_json(1, True)
    assert not same_json({"a": None}, {})
    assert not same_json([1, 2], [2, 1])


def test_the_digest_is_sha256_of_the_canonical_text() -> None:
    assert digest({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()
