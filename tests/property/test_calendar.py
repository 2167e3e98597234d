"""Planned instants against a slow oracle: every minute of a time is looked at on the clock of the zone.

`ORBIT_CALENDAR_EXAMPLES` sets how many plans are tried (80 by default).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orbit_sdk.calendar.cron import Cron, parse_cron
from orbit_sdk.calendar.plans import CronPlan, Gap, Repeat, next_fire
from orbit_sdk.calendar.zones import load_zone
from orbit_sdk.errors import InvalidArgument

EXAMPLES = int(os.environ.get("ORBIT_CALENDAR_EXAMPLES", "80"))
MINUTE = 60_000_000
STEP = timedelta(minutes=1)
BEFORE = 26 * 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A zone and a day near which its clock does something.
CHANGES = (
    ("UTC", "2026-03-29"),
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("Europe/London", "2026-03-29"),
    ("Europe/Dublin", "2026-10-25"),
    ("Europe/Lisbon", "1996-03-31"),
    ("Europe/Istanbul", "2016-09-07"),
    ("Europe/Moscow", "2011-03-27"),
    ("Europe/Moscow", "2014-10-26"),
    ("Europe/Volgograd", "2020-12-27"),
    ("Europe/Chisinau", "2024-03-31"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("America/St_Johns", "2010-03-14"),
    ("America/St_Johns", "2010-11-07"),
    ("America/Santiago", "2026-09-06"),
    ("America/Sao_Paulo", "2018-11-04"),
    ("America/Caracas", "2016-05-01"),
    ("America/Havana", "2026-03-08"),
    ("America/Asuncion", "2024-10-06"),
    ("America/Nuuk", "2024-03-30"),
    ("America/Scoresbysund", "2024-03-31"),
    ("Antarctica/Troll", "2026-03-29"),
    ("Antarctica/Casey", "2020-10-04"),
    ("Africa/Cairo", "2024-04-26"),
    ("Africa/Casablanca", "2024-03-10"),
    ("Africa/El_Aaiun", "2024-04-14"),
    ("Africa/Juba", "2021-02-01"),
    ("Africa/Windhoek", "2017-09-03"),
    ("Asia/Almaty", "2024-03-01"),
    ("Asia/Amman", "2022-10-28"),
    ("Asia/Gaza", "2024-04-20"),
    ("Asia/Kathmandu", "1986-01-01"),
    ("Asia/Pyongyang", "2015-08-15"),
    ("Asia/Pyongyang", "2018-05-04"),
    ("Asia/Tehran", "2022-03-22"),
    ("Asia/Tokyo", "2026-03-29"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Pacific/Chatham", "2026-09-27"),
    ("Pacific/Norfolk", "2019-10-06"),
    ("Pacific/Fiji", "2020-12-20"),
)


@st.composite
def numbers(draw: st.DrawFn, low: int, high: int) -> str:
    """One entry of a field."""
    first = draw(st.integers(low, high))
    shape = draw(st.sampled_from(("one", "one", "range", "step", "star", "every")))
    if shape == "one":
        return str(first)
    if shape == "star":
        return "*"
    if shape == "every":
        return f"*/{draw(st.integers(1, high - low + 1))}"
    last = draw(st.integers(first, high))
    return f"{first}-{last}" if shape == "range" else f"{first}-{last}/{draw(st.integers(1, 7))}"


def field(low: int, high: int) -> st.SearchStrategy[str]:
    return st.lists(numbers(low, high), min_size=1, max_size=3).map(",".join)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Expressions with a liking for the hours in which clocks change."""
    hour = draw(st.one_of(st.sampled_from(("*", "0", "1", "2", "3", "1-3", "23,0", "*/2")), field(0, 23)))
    minute = draw(st.one_of(st.sampled_from(("0", "30", "*/15", "*")), field(0, 59)))
    day = draw(st.one_of(st.just("*"), field(1, 31)))
    month = draw(st.one_of(st.just("*"), st.just("*"), field(1, 12)))
    weekday = draw(st.one_of(st.just("*"), field(0, 7)))
    return f"{minute} {hour} {day} {month} {weekday}"


@dataclass(frozen=True)
class Look:
    """One minute: its instant, what the wall shows, what it jumped over, whether it showed this before."""

    at: int
    wall: datetime
    jumped: tuple[datetime, ...]
    again: bool


def looks(zone: str, start: datetime, minutes: int) -> list[Look]:
    """Every minute of a time from a whole minute on; what came before it is known, too."""
    info = ZoneInfo(zone)
    found: list[Look] = []
    seen: set[datetime] = set()
    previous: datetime | None = None
    for step in range(-BEFORE, minutes):
        at = start + timedelta(minutes=step)
        wall = at.astimezone(info).replace(tzinfo=None, fold=0)
        jumped: list[datetime] = []
        if previous is not None:
            missing = previous + STEP
            while missing < wall:
                jumped.append(missing)
                missing += STEP
        found.append(Look((at - EPOCH) // timedelta(microseconds=1), wall, tuple(jumped), wall in seen))
        seen.add(wall)
        previous = wall
    return found[BEFORE:]


def matches(cron: Cron, times: frozenset[int], wall: datetime) -> bool:
    return (
        wall.hour * 60 + wall.minute in times
        and wall.month in cron.months
        and cron.day_matches(wall.day, wall.weekday())
    )


def oracle(cron: Cron, seen: list[Look], gap: Gap, repeat: Repeat) -> list[int]:
    times = frozenset(cron.times)
    found: list[int] = []
    for look in seen:
        ordinary = matches(cron, times, look.wall) and (repeat is Repeat.BOTH or not look.again)
        late = gap is Gap.NEXT_VALID and any(matches(cron, times, wall) for wall in look.jumped)
        if ordinary or late:
            found.append(look.at)
    return found


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    expression=expressions(),
    change=st.sampled_from(CHANGES),
    shift=st.integers(-2_000, 200),
    years=st.sampled_from((0, 0, 0, -2, -1, 1, 2)),
)
def test_planned_instants_are_those_that_a_look_at_every_minute_finds(
    expression: str, change: tuple[str, str], shift: int, years: int
) -> None:
    try:
        cron = parse_cron(expression)
    except InvalidArgument:
        return  # it names no day that exists
    zone, day = change
    around = datetime.fromisoformat(day).replace(tzinfo=UTC)
    around = around.replace(year=around.year + years) + timedelta(minutes=shift)
    minutes = 2 * 1_440
    after = (around - EPOCH) // timedelta(microseconds=1) - 1
    until = after + minutes * MINUTE
    seen = looks(zone, around, minutes)
    for gap, repeat in product(Gap, Repeat):
        plan = CronPlan(cron, load_zone(zone), gap, repeat)
        expected = oracle(cron, seen, gap, repeat)
        found = list(plan.fires(after, until))
        assert found == expected, (expression, zone, around, gap, repeat)
        assert plan.count(after, until) == len(expected)
        first = next_fire(plan, after)
        assert first is None or first == expected[0] if expected else first is None or first > until


def test_thirty_zones_are_looked_at() -> None:
    assert len({zone for zone, _ in CHANGES}) >= 30
