"""What a schedule owes, purely: versions in force, accounts, places, templates."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.protocol.schedules import ScheduleSpec
from orbit_sdk.values.instants import from_rfc3339
from orbit_server.schedules.decide import (
    InForce,
    Place,
    account,
    next_planned,
    place,
    planned_ranges,
    span_in_force,
)
from orbit_server.schedules.lifecycle import Why, fire_id_of
from orbit_server.schedules.specs import Spec, accepted_spec, stored_spec
from orbit_server.schedules.templates import FACTS, check_template, render

SECOND = 1_000_000
BASE: dict[str, Any] = {
    "timing": {"kind": "RATE", "every_s": 10, "anchor": "1970-01-01T00:00:00Z"},
    "misfire": {"policy": "SKIP"},
    "overlap": {"policy": "ALLOW"},
    "target": {"kind": "TASK", "queue": "q", "handler": "h", "handler_version": 1},
}


def spec(every_s: int = 10, **changes: Any) -> Spec:
    said = {**BASE, **changes, "timing": {**BASE["timing"], "every_s": every_s}}
    return stored_spec(accepted_spec(ScheduleSpec.model_validate(said), 0))


def version(number: int, effective_s: int, every_s: int = 10, **changes: Any) -> InForce:
    return InForce(number, effective_s * SECOND, spec(every_s, **changes))


def test_the_newest_version_that_has_taken_effect_is_in_force() -> None:
    versions = [version(1, 0), version(2, 100), version(3, 50)]
    pieces = [(each.version, low, high) for each, low, high in span_in_force(versions, 0, 200 * SECOND)]
    assert [number for number, _, _ in pieces] == [1, 3, 3]
    assert pieces[0][1] == 0
    assert pieces[-1][2] == 200 * SECOND
    assert all(first[2] == second[1] for first, second in pairwise(pieces))


def test_an_instant_at_the_boundary_belongs_to_the_new_version() -> None:
    versions = [version(1, 0), version(2, 30, every_s=15)]
    found = account(versions, 0, 61 * SECOND, 100)
    assert [(number, run.planned_at // SECOND) for number, run in found.runs] == [
        *((1, at) for at in (10, 20)),
        *((2, at) for at in (30, 45, 60)),
    ]
    assert next_planned(versions, 20 * SECOND) == 30 * SECOND


def test_nothing_is_planned_before_the_first_version_or_outside_the_bounds() -> None:
    bounds: dict[str, Any] = {"start_at": "1970-01-01T00:00:20Z", "end_at": "1970-01-01T00:00:40Z"}
    versions = [version(1, 15, **bounds)]
    found = account(versions, 0, 60 * SECOND, 100)
    assert [run.planned_at // SECOND for _, run in found.runs] == [20, 30]
    assert next_planned(versions, 30 * SECOND) is None
    assert [each[3] for each in planned_ranges(versions, 0, 90 * SECOND)] == [2]


def test_an_account_in_bites_is_the_account_in_one() -> None:
    versions = [version(1, 0), version(2, 25, every_s=1)]
    whole = account(versions, 0, 50 * SECOND, 1_000)
    parts: list[Any] = []
    reached = 0
    while reached < 50 * SECOND:
        found = account(versions, reached, 50 * SECOND, 7)
        assert found.accounted_to > reached
        parts += found.runs
        reached = found.accounted_to
    assert tuple(parts) == whole.runs


@pytest.mark.parametrize(
    ("overlap", "unfinished", "queued", "expected"),
    [
        ({"policy": "ALLOW"}, 5, 0, (Place.START, None)),
        ({"policy": "SKIP"}, 0, 0, (Place.START, None)),
        ({"policy": "SKIP"}, 1, 0, (Place.SKIP, Why.OVERLAP_SKIPPED)),
        ({"policy": "QUEUE", "backlog": 2}, 0, 0, (Place.START, None)),
        ({"policy": "QUEUE", "backlog": 2}, 0, 1, (Place.WAIT, Why.OVERLAP_QUEUED)),
        ({"policy": "QUEUE", "backlog": 2}, 1, 1, (Place.WAIT, Why.OVERLAP_QUEUED)),
        ({"policy": "QUEUE", "backlog": 2}, 1, 2, (Place.SKIP, Why.OVERLAP_BACKLOG_FULL)),
    ],
)
def test_the_overlap_rule_places_an_occurrence(
    overlap: dict[str, Any], unfinished: int, queued: int, expected: tuple[Place, Why | None]
) -> None:
    assert place(spec(overlap=overlap), unfinished, queued) == expected


def test_a_fire_is_its_schedule_and_its_planned_instant() -> None:
    assert fire_id_of("a" * 32, 5) == fire_id_of("a" * 32, 5)
    assert fire_id_of("a" * 32, 5) != fire_id_of("b" * 32, 5)
    assert fire_id_of("a" * 32, 5_000) < fire_id_of("a" * 32, 9_000)


def test_what_was_left_open_is_filled_in_when_a_version_is_accepted() -> None:
    open_ended = {**BASE, "timing": {"kind": "RATE", "every_s": 5}}
    at = from_rfc3339("2026-01-01T00:00:00.250000Z")
    text = json.loads(accepted_spec(ScheduleSpec.model_validate(open_ended), at))
    assert text["timing"]["anchor"] == "2026-01-01T00:00:00.250000Z"
    cron = {**BASE, "timing": {"kind": "CRON", "cron": "0 2 * * *", "zone": "Asia/Tokyo"}}
    text = json.loads(accepted_spec(ScheduleSpec.model_validate(cron), at))
    assert (text["timing"]["gap"], text["timing"]["repeat"]) == ("NEXT_VALID", "FIRST")


def test_marks_are_replaced_wherever_they_stand() -> None:
    facts: dict[str, Any] = {name: f"<{name}>" for name in FACTS}
    value: Any = {"a": [{"$fire": "id"}, 1], "b": {"c": {"$fire": "local_date"}}, "d": "$fire"}
    assert render(value, facts) == {"a": ["<id>", 1], "b": {"c": "<local_date>"}, "d": "$fire"}
    check_template(value, "input")


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": {"$fire": "moon"}}, "input.a.$fire"),
        ([{"$fire": "id", "x": 1}], "input[0]"),
        ({"$fire": None}, "input.$fire"),
        ({"$fire": ["id"]}, "input.$fire"),
    ],
)
def test_a_mark_that_cannot_be_filled_in_is_refused_by_its_place(value: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_template(value, "input")
    assert [detail.field for detail in refused.value.details] == [field]
