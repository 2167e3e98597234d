"""Ids are the same on every rerun; instants survive the way to text and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbit_sdk.values.ids import IdSeed, derive_id, is_id
from orbit_sdk.values.instants import from_rfc3339, is_rfc3339, to_rfc3339

YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999


@given(st.lists(st.text()), st.lists(st.text()))
def test_derived_ids_keep_their_parts_apart(left: list[str], right: list[str]) -> None:
    assert is_id(derive_id(*left))
    assert (derive_id(*left) == derive_id(*right)) == (left == right)


@given(st.integers(0, 2**48 * 1000 - 1), st.text(), st.integers(0, 1000))
def test_a_seed_always_makes_the_same_uuid7_ids(time_us: int, entropy: str, n: int) -> None:
    made = IdSeed(time_us, entropy).nth(n)
    assert made == IdSeed(time_us, entropy).nth(n) != IdSeed(time_us, entropy).nth(n + 1)
    assert is_id(made)
    assert int(made[:12], 16) == time_us // 1000
    assert made[12] == "7"
    assert made[16] in "89ab"


@pytest.mark.parametrize("text", ["", "A" * 32, "0" * 31, "0" * 33, "٠" * 32, "0" * 32 + "\n"])
def test_other_texts_are_no_ids(text: str) -> None:
    assert not is_id(text)


@given(st.integers(YEAR_1, YEAR_9999))
def test_an_instant_comes_back_from_its_text(us: int) -> None:
    text = to_rfc3339(us)
    assert len(text) == 27
    assert from_rfc3339(text) == us


def test_instants_read_any_offset_and_fewer_decimals() -> None:
    expected = int(datetime(2026, 9, 18, 8, 0, tzinfo=UTC).timestamp()) * 1_000_000
    assert from_rfc3339("2026-09-18T08:00:00Z") == expected
    assert from_rfc3339("2026-09-18t10:00:00.5+02:00") == expected + 500_000
    assert from_rfc3339("2026-09-18T02:30:00-05:30") == expected


@pytest.mark.parametrize(
    "text",
    [
        "2026-09-18",
        "2026-09-18T08:00:00",
        "2026-09-18 08:00:00Z",
        "2026-02-30T08:00:00Z",
        "2026-09-18T24:00:00Z",
        "2026-09-18T08:00:60Z",
        "2026-09-18T08:00:00.1234567Z",
        "2026-09-18T08:00:00+24:00",
        "2026-09-18T08:00:00+00:60",
        "٢٠26-09-18T08:00:00Z",
        "2026-09-18T08:00:00Z\n",
    ],
)
def test_other_texts_are_no_instants(text: str) -> None:
    assert not is_rfc3339(text)


def test_an_instant_far_outside_the_calendar_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the years"):
        to_rfc3339(10**30)
