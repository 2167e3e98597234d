"""Planned instants: known answers, bounds, and what happens at their edges."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from orbit_sdk.calendar.cron import parse_cron
from orbit_sdk.calendar.notes import notes, warnings
from orbit_sdk.calendar.plans import (
    CronPlan,
    Gap,
    RatePlan,
    Repeat,
    cron_plan,
    next_fire,
    next_fires,
)
from orbit_sdk.calendar.zones import load_zone, tzdata_version, year_start, zone_names
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.instants import from_rfc3339, to_rfc3339
from tests.unit.calendar.known import ALL, NEXT

HOUR = 3_600_000_000


def plan(cron: str, zone: str, policies: str = "SKIP FIRST") -> CronPlan:
    gap, repeat = policies.split()
    return CronPlan(parse_cron(cron), load_zone(zone), Gap(gap), Repeat(repeat))


def short(at: int) -> str:
    return to_rfc3339(at).replace(".000000Z", "Z").removesuffix(":00Z").removesuffix("Z") + "Z"


def text(minutes: str) -> str:
    return short(from_rfc3339(minutes[:-1] + (":00Z" if minutes.count(":") == 1 else "Z")))


KNOWN = [
    pytest.param(cron, zone, after, pair, answer, id=f"{title}-{pair}")
    for title, cron, zone, after, answers in NEXT
    for pairs, answer in answers.items()
    for pair in (ALL if pairs == "*" else pairs.split(" | "))
]


@pytest.mark.parametrize(("cron", "zone", "after", "policies", "answer"), KNOWN)
def test_known_plans_give_their_known_instants(
    cron: str, zone: str, after: str, policies: str, answer: str
) -> None:
    expected = [text(each) for each in answer.split()]
    found = next_fires(plan(cron, zone, policies), from_rfc3339(after), len(expected))
    assert [short(at) for at in found] == expected


@pytest.mark.parametrize("policies", ALL)
@pytest.mark.parametrize(
    ("cron", "zone"),
    [("0 0 * * *", "America/Santiago"), ("30 1,2,3 * * *", "Antarctica/Troll"), ("*/7 * * * *", "Asia/Gaza")],
)
def test_asking_for_the_next_a_whole_year_long_gives_the_years_instants(
    cron: str, zone: str, policies: str
) -> None:
    asked = plan(cron, zone, policies)
    start, end = from_rfc3339("2023-12-31T23:59:59Z"), from_rfc3339("2024-03-31T23:59:59Z")
    whole = list(asked.fires(start, end))
    chained, at = [], next_fire(asked, start)
    while at is not None and at <= end:
        chained.append(at)
        at = next_fire(asked, at)
    assert chained == whole == sorted(set(whole))
    assert asked.count(start, end) == len(whole)


def test_a_year_of_a_zone_with_two_hour_changes_is_known_to_the_second() -> None:
    start, end = from_rfc3339("2024-12-31T23:59:59Z"), from_rfc3339("2025-12-31T23:59:59Z")
    counts = {
        pair: len(list(plan("30 1,2,3 * * *", "Antarctica/Troll", pair).fires(start, end))) for pair in ALL
    }
    assert counts == {
        "SKIP FIRST": 1093,
        "SKIP BOTH": 1095,
        "NEXT_VALID FIRST": 1094,
        "NEXT_VALID BOTH": 1096,
    }


def test_a_year_without_surprises_has_its_digest() -> None:
    start, end = from_rfc3339("2025-12-31T23:59:59Z"), from_rfc3339("2026-12-31T23:59:59Z")
    lines = [
        to_rfc3339(at).replace(".000000Z", "Z")
        for at in plan("0 0 * * *", "America/Santiago", "NEXT_VALID BOTH").fires(start, end)
    ]
    assert len(lines) == 365
    assert len(hashlib.sha256("\n".join(lines).encode()).hexdigest()) == 64


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Tokyo"])
def test_the_rarest_date_is_found_and_nothing_runs_for_ever(zone: str) -> None:
    rare = plan("0 12 29 2 */7", zone)
    found = next_fires(rare, from_rfc3339("2026-01-01T00:00:00Z"), 2)
    assert [short(at)[:10] for at in found] == ["2032-02-29", "2060-02-29"]


def test_an_end_bounds_the_search() -> None:
    rare = plan("0 0 29 2 *", "Europe/Berlin")
    assert list(rare.fires(from_rfc3339("2026-01-01T00:00:00Z"), from_rfc3339("2026-12-31T00:00:00Z"))) == []


def test_the_last_year_is_the_end_of_all_plans() -> None:
    assert next_fire(plan("* * * * *", "UTC"), from_rfc3339("9500-01-01T00:00:00Z")) is None
    assert next_fire(RatePlan(1, 0), from_rfc3339("9500-01-01T00:00:00Z")) is None
    assert (
        RatePlan(1, 0).count(from_rfc3339("9500-01-01T00:00:00Z"), from_rfc3339("9600-01-01T00:00:00Z")) == 0
    )


def test_nothing_is_planned_before_1970() -> None:
    early = from_rfc3339("0001-01-01T00:00:00Z")
    assert next_fire(plan("0 0 * * *", "UTC"), early) == 0
    assert next_fire(RatePlan(86_400, early), early) == 0
    assert RatePlan(86_400, early).count(early, from_rfc3339("1970-01-02T00:00:00Z")) == 2


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Santiago", "Africa/Casablanca", "Asia/Gaza"])
@pytest.mark.parametrize("year", [2499, 2500, 2900, 8999])
def test_changes_far_ahead_are_where_the_clock_says(zone: str, year: int) -> None:
    place = load_zone(zone)
    days = range(year_start(year), year_start(year + 1), 86_400)
    moved = sum(place.offset(day) != place.offset(day + 86_400) for day in days)
    changes = place.changes(year)
    assert len(changes) == moved
    for change in changes:
        assert (place.offset(change.at - 1), place.offset(change.at)) == (change.before, change.after)


@pytest.mark.parametrize(
    ("every", "anchor", "after", "answer"),
    [
        (3600, "2026-06-01T00:00:00Z", "2026-06-01T00:00:00Z", "2026-06-01T01:00Z 2026-06-01T02:00Z"),
        (3600, "2026-06-01T00:00:00Z", "2026-06-01T02:59:59.999999Z", "2026-06-01T03:00Z"),
        (3600, "2026-06-01T00:00:00Z", "2026-05-01T00:00:00Z", "2026-06-01T00:00Z"),
        (90_000, "2026-03-27T12:00:00Z", "2026-03-28T00:00:00Z", "2026-03-28T13:00Z 2026-03-29T14:00Z"),
        (1, "2000-01-01T00:00:00Z", "2026-09-18T12:34:56.500000Z", "2026-09-18T12:34:57Z"),
        (7, "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z", "2027-01-01T00:00:01Z 2027-01-01T00:00:08Z"),
        (1800, "2026-03-08T05:00:00Z", "2026-03-08T06:15:00Z", "2026-03-08T06:30Z 2026-03-08T07:00Z"),
    ],
)
def test_a_fixed_rate_is_arithmetic_on_its_anchor(every: int, anchor: str, after: str, answer: str) -> None:
    expected = [text(each) for each in answer.split()]
    found = next_fires(RatePlan(every, from_rfc3339(anchor)), from_rfc3339(after), len(expected))
    assert [short(at) for at in found] == expected


def test_an_anchor_keeps_its_microseconds() -> None:
    rate = RatePlan(10, from_rfc3339("2026-01-01T00:00:00.250000Z"))
    assert to_rfc3339(next_fires(rate, from_rfc3339("2026-01-01T00:00:30.250000Z"), 1)[0]).endswith(
        "40.250000Z"
    )


@pytest.mark.parametrize("every", [0, -60, True, "60", 0.5, float("inf"), 10**12])
def test_a_rate_is_whole_seconds_from_one_on(every: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        RatePlan(every, 0)  # type: ignore[arg-type]  # what comes over the wire may be anything
    assert refused.value.details[0].field == "every"


@pytest.mark.parametrize(("after", "until"), list(itertools.product((-5, 0, 7, 10), (-1, 0, 3, 25))))
def test_counting_a_rate_agrees_with_listing_it(after: int, until: int) -> None:
    rate = RatePlan(3, 4_000_000)
    span = after * 1_000_000, until * 1_000_000
    assert rate.count(*span) == len(list(rate.fires(*span)))


@pytest.mark.parametrize(
    "name",
    ["", "localtime", "posixrules", "europe/warsaw", "UTC+2", "Europe", "tzdata.zi", "../UTC", "Factory"],
)
def test_what_is_no_zone_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load_zone(name)
    assert refused.value.details[0].field == "zone"
    assert f'"{name}"' in refused.value.details[0].reason


@pytest.mark.parametrize(
    "name",
    ["Europe/Kyiv", "Europe/Kiev", "Asia/Calcutta", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC"],
)
def test_old_and_new_names_of_zones_are_known(name: str) -> None:
    assert name in zone_names()
    assert load_zone(name).offset(1_700_000_000) % 900 == 0


def test_a_zone_named_after_its_offset_means_the_opposite_sign() -> None:
    assert load_zone("Etc/GMT+5").offset(0) == -5 * 3600


def test_the_version_of_the_zone_data_is_told() -> None:
    assert tzdata_version()[:2] == "20"


def test_a_zone_whose_clock_changes_wants_both_policies() -> None:
    at = from_rfc3339("2026-01-01T00:00:00Z")
    for gap, repeat, field in ((None, "FIRST", "gap"), ("SKIP", None, "repeat"), ("skip", "FIRST", "gap")):
        with pytest.raises(InvalidArgument) as refused:
            cron_plan("0 2 * * *", "Europe/Berlin", gap, repeat, at)
        assert refused.value.details[0].field == field
    assert cron_plan("0 2 * * *", "Asia/Tokyo", None, None, at).gap is Gap.NEXT_VALID


def test_what_is_unusual_near_a_change_is_said() -> None:
    spring = plan("30 2 * * *", "Europe/Berlin", "NEXT_VALID FIRST")
    start = from_rfc3339("2026-03-28T00:00:00Z")
    found = next_fires(spring, start, 3)
    assert [note is None for note in notes(spring, found)] == [True, False, True]
    assert "02:30" in (notes(spring, found)[1] or "")
    assert len(warnings(spring, start, found[-1])) == 1
    autumn = plan("30 2 * * *", "Europe/Berlin", "SKIP BOTH")
    start = from_rfc3339("2026-10-24T12:00:00Z")
    found = next_fires(autumn, start, 3)
    assert [note is None for note in notes(autumn, found)] == [False, False, True]
    assert "there twice" in warnings(autumn, start, found[-1])[0]


def test_a_hole_is_warned_of_though_nothing_fires_in_it() -> None:
    skipping = plan("30 2 * * *", "Europe/Berlin", "SKIP FIRST")
    start = from_rfc3339("2026-03-28T00:00:00Z")
    found = next_fires(skipping, start, 2)
    assert notes(skipping, found) == [None, None]
    assert "2026-03-29" in warnings(skipping, start, found[-1])[0]
