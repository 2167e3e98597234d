"""The canonical form is that of an independent implementation of RFC 8785, for every JSON value."""

from __future__ import annotations

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from orbit_sdk.values.canonical import canonical_bytes
from orbit_sdk.values.json_strict import Json, parse_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [",1.5", "[null", "null", ":1e5", "\U0001f600", "\ufb33", "\x00", "\\", '"']
)
NUMBERS = st.integers(1 - 2**53, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES)
@settings(max_examples=400)
def test_the_canonical_form_equals_another_implementation(value: Json) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(1 - 2**53, 2**53 - 1)
        | st.floats(-(2.0**53) + 1, 2.0**53 - 1),
        lambda inner: (
            st.lists(inner, max_size=5) | st.dictionaries(st.text("abcd", max_size=3), inner, max_size=5)
        ),
        max_leaves=20,
    )
)
def test_what_was_accepted_once_is_accepted_in_canonical_form(value: Json) -> None:
    once = canonical_bytes(value)
    assert canonical_bytes(parse_json(once, max_bytes=10**6)) == once
