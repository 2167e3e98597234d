"""Formats accept what their table says; patterns take linear time."""

from __future__ import annotations

import pytest

from orbit_sdk.definition.formats import FORMAT_RULES, to_decimal
from orbit_sdk.definition.patterns import compile_pattern
from orbit_sdk.definition.value_types import FORMATS


def test_every_format_has_a_rule() -> None:
    assert set(FORMATS) == set(FORMAT_RULES)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", ["2026-09-18T08:00:00Z"], ["2026-09-18", "now"]),
        (
            "date",
            ["2026-02-28", "2024-02-29"],
            ["2026-02-29", "26-1-1", "2026-09-18T00:00:00Z", "2026-09-18\n"],
        ),
        (
            "time",
            ["08:00:00", "23:59:59.5Z", "08:00:00+02:00"],
            ["24:00:00", "8:00", "08:00", "08:00:00+24:00"],
        ),
        (
            "duration",
            ["P1D", "PT5M", "P1DT2H3M4.5S", "-PT0.5S", "P2W", "P0D"],
            ["P", "PT", "P1Y", "P1M", "1D", "P1DT", "P1D2H", "P2W1D", "PT5.5M"],
        ),
        (
            "decimal",
            ["1", "-12.50", "0.1", "007"],
            ["", "1.", ".5", "1e5", "+1", "NaN", "١", "1" * 65, "1\n"],
        ),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000", "x"]),
        ("email", ["a@b", "a.b+c@d-e.org"], ["a", "a@", "@b", "a@b@c", "a b@c", "a@b..c", "a@" + "b" * 300]),
        (
            "uri",
            ["https://a.example/b?c#d", "urn:isbn:1"],
            ["a", "//a", "https://a b", "https://ä", "1:a", "a:"],
        ),
    ],
)
def test_a_format_accepts_and_refuses(name: str, good: list[str], bad: list[str]) -> None:
    rule = FORMAT_RULES[name]
    assert [text for text in good if not rule(text)] == []
    assert [text for text in bad if rule(text)] == []


def test_decimals_are_exact_numbers() -> None:
    assert to_decimal("0.1") * 3 == to_decimal("0.3")
    with pytest.raises(ValueError, match="not a decimal"):
        to_decimal("1e5")


def test_a_pattern_searches_anywhere_and_its_ends_are_the_very_ends() -> None:
    assert compile_pattern("b")("abc")
    assert not compile_pattern("^b")("abc")
    assert not compile_pattern("c$")("abc\n")
    assert not compile_pattern("b")(7)


@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)", "(a)\\1", "(?<=a)b", "[", "(a{1000}){1000}{1000}"])
def test_patterns_that_could_run_for_ever_or_mean_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="linear-time"):
        compile_pattern(pattern)


def test_a_pattern_that_makes_other_engines_hang_is_answered_at_once() -> None:
    assert not compile_pattern("^(a+)+$")("a" * 50_000 + "b")


@pytest.mark.parametrize(
    "pattern",
    ["a{5000}b", "(?:a{100}){100}b", "([ab]{40}c){1,40}", "(a{10}){10,}{11}", "[]x]{1001}", "\\d{1001}"],
)
def test_counts_that_would_make_a_pattern_slow_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="more than 1000 parts"):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", [".{1,900}", "[{9999}]", "a\\{9999}", "\\p{L}{60}", "([a-z]{30}-){30}"])
def test_other_counts_are_taken(pattern: str) -> None:
    compile_pattern(pattern)
