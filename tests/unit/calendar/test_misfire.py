"""What becomes of planned instants that nobody handled in time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from orbit_sdk.calendar.cron import parse_cron
from orbit_sdk.calendar.misfire import Misfire, MisfirePolicy, Reason, judge, last_fires
from orbit_sdk.calendar.plans import CronPlan, Gap, RatePlan, Repeat
from orbit_sdk.calendar.zones import load_zone
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.instants import from_rfc3339, to_rfc3339

SECOND = 1_000_000
MINUTE = 60 * SECOND


def plan(cron: str, zone: str = "UTC", repeat: Repeat = Repeat.FIRST) -> CronPlan:
    return CronPlan(parse_cron(cron), load_zone(zone), Gap.NEXT_VALID, repeat)


def catch_up(window_s: int = 86_400, count: int = 100, per_minute: int = 60) -> MisfirePolicy:
    return MisfirePolicy(Misfire.CATCH_UP, window_s=window_s, count=count, per_minute=per_minute)


OUTAGES = [
    ("* * * * *", "UTC", "2026-05-04T08:29:30Z", "2026-05-04T10:22:30Z", 113),
    ("0 * * * *", "UTC", "2026-05-04T08:00:00Z", "2026-05-04T11:05:00Z", 3),
    ("30 2 * * *", "Europe/Warsaw", "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z", 3),
    ("*/5 * * * *", "UTC", "2026-05-01T00:00:00Z", "2026-05-08T00:03:00Z", 2016),
]


@pytest.mark.parametrize(("cron", "zone", "down", "back", "missed"), OUTAGES)
@pytest.mark.parametrize("misfire", Misfire)
def test_every_instant_of_an_outage_is_in_one_run_or_one_record(
    cron: str, zone: str, down: str, back: str, missed: int, misfire: Misfire
) -> None:
    asked, start, end = plan(cron, zone), from_rfc3339(down), from_rfc3339(back)
    policy = MisfirePolicy(misfire, window_s=30 * 86_400, count=50, per_minute=60)
    found = judge(asked, policy, start, end, end)
    late = [run for run in found.runs if run.late]
    on_time = len(found.runs) - len(late)
    assert found.accounted_to == end
    assert asked.count(start, end) == missed
    if misfire is Misfire.SKIP:
        assert not late
        assert [(cut.reason, cut.count) for cut in found.cuts] == [(Reason.MISFIRE_SKIPPED, missed - on_time)]
    elif misfire is Misfire.COALESCE:
        (run,), (cut,) = late, found.cuts
        assert (run.first_at, run.planned_at, run.merged) == (cut.first_at, cut.last_at, missed - on_time)
    else:
        assert len(late) + sum(cut.count for cut in found.cuts) == missed - on_time
        assert len(late) == min(50, missed - on_time)
        assert [run.planned_at for run in late] == sorted(run.planned_at for run in late)
        assert all(later.start_at - run.start_at == SECOND for run, later in pairwise(late))


@pytest.mark.parametrize(("window_s", "hours"), [(600, ["11"]), (3600, ["11"]), (86_400, ["09", "10", "11"])])
def test_the_window_counts_back_from_now(window_s: int, hours: list[str]) -> None:
    down, back = from_rfc3339("2026-05-04T08:00:00Z"), from_rfc3339("2026-05-04T11:05:00Z")
    found = judge(plan("0 * * * *"), catch_up(window_s=window_s), down, back, back)
    assert [to_rfc3339(run.planned_at)[11:13] for run in found.runs] == hours
    assert sum(cut.count for cut in found.cuts) == 3 - len(hours)
    assert {cut.reason for cut in found.cuts} <= {Reason.CATCH_UP_WINDOW}


def test_the_newest_are_kept_and_run_oldest_first() -> None:
    down, back = from_rfc3339("2026-05-01T00:00:00Z"), from_rfc3339("2026-05-01T12:02:00Z")
    found = judge(plan("*/5 * * * *"), catch_up(count=3, per_minute=2), down, back, back)
    assert [to_rfc3339(run.planned_at)[11:16] for run in found.runs] == ["11:50", "11:55", "12:00"]
    assert [run.start_at - back for run in found.runs] == [0, 30 * SECOND, 60 * SECOND]
    (cut,) = found.cuts
    assert (cut.reason, cut.count) == (Reason.CATCH_UP_COUNT, 141)


@pytest.mark.parametrize("misfire", Misfire)
def test_a_little_late_is_on_time_under_every_policy(misfire: Misfire) -> None:
    planned = from_rfc3339("2026-05-04T08:00:00Z")
    policy = MisfirePolicy(misfire, window_s=3600, count=5, per_minute=60)
    for late_us, runs in ((59 * SECOND, 1), (60 * SECOND, 1)):
        found = judge(plan("0 * * * *"), policy, planned - MINUTE, planned + late_us, planned + late_us)
        assert [(run.planned_at, run.late) for run in found.runs] == [(planned, False)] * runs
        assert found.cuts == ()


def test_both_passes_of_a_repeated_time_are_missed_one_by_one() -> None:
    down, back = from_rfc3339("2026-10-24T12:00:00Z"), from_rfc3339("2026-10-26T12:00:00Z")
    found = judge(
        plan("30 2 * * *", "Europe/Berlin", Repeat.BOTH), catch_up(window_s=10 * 86_400), down, back, back
    )
    assert [to_rfc3339(run.planned_at)[5:16] for run in found.runs] == [
        "10-25T00:30",
        "10-25T01:30",
        "10-26T01:30",
    ]


def test_a_bite_bounds_what_is_taken_and_says_how_far_it_reached() -> None:
    rate, now = RatePlan(1, 0), 50 * SECOND
    taken: list[int] = []
    reached = 0
    while reached < now:
        found = judge(rate, MisfirePolicy(Misfire.SKIP), reached, now, now, bite=20)
        taken += [run.planned_at for run in found.runs]
        assert found.accounted_to > reached
        reached = found.accounted_to
    assert taken == [second * SECOND for second in range(1, 51)]


def test_a_year_of_seconds_is_judged_without_listing_it() -> None:
    year = 365 * 86_400 * SECOND
    found = judge(RatePlan(1, 0), catch_up(window_s=3600, count=10), 0, year, year)
    assert len([run for run in found.runs if run.late]) == 10
    assert len(found.runs) + sum(cut.count for cut in found.cuts) == 365 * 86_400


def test_nothing_planned_leaves_nothing_behind() -> None:
    found = judge(
        plan("0 0 1 1 *"),
        catch_up(),
        from_rfc3339("2026-02-01T00:00:00Z"),
        from_rfc3339("2026-03-01T00:00:00Z"),
        from_rfc3339("2026-03-01T00:00:00Z"),
    )
    assert (found.runs, found.cuts) == ((), ())


@pytest.mark.parametrize("count", [1, 3, 7, 500])
def test_the_last_instants_of_a_range_are_those_of_its_list(count: int) -> None:
    asked = plan("7,9 3,15 * * MON-FRI", "Europe/Berlin")
    start, end = from_rfc3339("2026-02-01T00:00:00Z"), from_rfc3339("2026-05-01T03:08:00Z")
    assert last_fires(asked, start, end, count) == list(asked.fires(start, end))[-count:]


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"misfire": Misfire.CATCH_UP}, "catch_up.window_s"),
        ({"misfire": Misfire.CATCH_UP, "window_s": 60}, "catch_up.count"),
        ({"misfire": Misfire.CATCH_UP, "window_s": 60, "count": 1}, "catch_up.per_minute"),
        ({"misfire": Misfire.SKIP, "after_ms": 1}, "misfire_after_ms"),
    ],
)
def test_a_policy_without_its_bounds_is_refused(policy: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        MisfirePolicy(**policy)  # type: ignore[arg-type]
    assert refused.value.details[0].field == field
