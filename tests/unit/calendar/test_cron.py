"""Reading cron expressions: what is accepted, and what is refused by name."""

from __future__ import annotations

import pytest

from orbit_sdk.calendar.cron import parse_cron
from orbit_sdk.errors import InvalidArgument

REFUSED = [
    ("* * * * * *", "cron", "six fields are not seconds and five"),
    ("* * * *", "cron", "four fields"),
    ("", "cron", "nothing at all"),
    ("0 0 * * * # nightly", "cron", "a comment"),
    ("0\u00a00 * * *", "cron", "a blank that is not ASCII"),
    ("@reboot", "cron", "a macro"),
    ("@every 1h30m", "cron", "a macro for a rate"),
    ("CRON_TZ=Asia/Tokyo 0 0 * * *", "cron", "a zone in the expression"),
    ("TZ=UTC 0 0 * * *", "cron", "a zone in the expression, shorter"),
    ("0-59," * 20_000 + " * * * *", "cron", "more than is read at all"),
    ("60 * * * *", "cron.minute", "a minute too high"),
    ("-1 * * * *", "cron.minute", "a negative minute"),
    ("1- * * * *", "cron.minute", "a range without an end"),
    ("1, * * * *", "cron.minute", "a comma at the end"),
    (",1 * * * *", "cron.minute", "a comma at the beginning"),
    ("5/ * * * *", "cron.minute", "a step without a number"),
    ("5/10 * * * *", "cron.minute", "a step on a single value"),
    ("5-5/0 * * * *", "cron.minute", "a step of zero"),
    ("*/61 * * * *", "cron.minute", "a step wider than the field"),
    ("5-10-15 * * * *", "cron.minute", "a range of three"),
    ("1.5 * * * *", "cron.minute", "a fraction"),
    ("\u0663 * * * *", "cron.minute", "a digit that is not ASCII"),
    ("\u00b2 * * * *", "cron.minute", "a superscript digit"),
    ("JAN * * * *", "cron.minute", "a month among the minutes"),
    ("H * * * *", "cron.minute", "a letter of another dialect"),
    ("* 24 * * *", "cron.hour", "an hour too high"),
    ("5 22-5 * * *", "cron.hour", "a range that runs backwards"),
    ("* * 32 * *", "cron.day_of_month", "a day too high"),
    ("* * 31-1/0 * *", "cron.day_of_month", "a range backwards with a step of zero"),
    ("0 0 15W * *", "cron.day_of_month", "a weekday nearest to a day"),
    ("0 0 L * *", "cron.day_of_month", "the last day in another dialect"),
    ("0 0 ? * *", "cron.day_of_month", "a question mark"),
    ("0 0 30 2 *", "cron.day_of_month", "30 February"),
    ("0 0 31 4 *", "cron.day_of_month", "31 April"),
    ("0 0 31 2,4,6,9,11 *", "cron.day_of_month", "the 31st of short months"),
    ("0 0 31 2 */2", "cron.day_of_month", "31 February and a weekday that begins with a star"),
    ("0 0 * 13 *", "cron.month", "a thirteenth month"),
    ("0 0 * JAN-FOO *", "cron.month", "a word that is no month"),
    ("0 0 * * 8", "cron.day_of_week", "an eighth weekday"),
    ("0 0 * * FRI-SUN", "cron.day_of_week", "a range of names backwards over Sunday"),
    ("0 0 * * 5#2", "cron.day_of_week", "the second Friday in another dialect"),
]


@pytest.mark.parametrize(("text", "field"), [row[:2] for row in REFUSED], ids=[row[2] for row in REFUSED])
def test_what_is_not_read_is_refused_by_field_text_and_rule(text: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_cron(text)
    (detail,) = refused.value.details
    assert detail.field == field
    if field != "cron":
        assert '"' in detail.reason
        assert ":" in detail.reason
    assert len(str(refused.value)) < 1_000


def test_sunday_is_zero_and_seven_and_a_name_in_any_case() -> None:
    assert (
        parse_cron("0 0 * * 0").weekdays
        == parse_cron("0 0 * * 7").weekdays
        == parse_cron("0 0 * * sUn").weekdays
        == parse_cron("0 0 * * 0,7").weekdays
        == frozenset({6})
    )


def test_a_star_may_stand_in_a_list_and_marks_the_day_field() -> None:
    cron = parse_cron("0 0 *,1 * 1")
    assert not cron.either
    assert cron.days == frozenset(range(1, 32))


@pytest.mark.parametrize(
    ("text", "either"),
    [("0 0 1 * 1", True), ("0 0 */2 * 1", False), ("0 0 1 * *", False), ("0 0 1 * */2", False)],
)
def test_two_day_fields_widen_each_other_only_when_neither_begins_with_a_star(
    text: str, either: bool
) -> None:
    assert parse_cron(text).either is either


def test_steps_and_ranges_give_exactly_their_values() -> None:
    assert parse_cron("10-50/15 0 * * *").times == (10, 25, 40)
    assert parse_cron("*/40 1 * * *").times == (60, 100)
    assert parse_cron("0 0 * jan-MAR/2 *").months == frozenset({1, 3})
