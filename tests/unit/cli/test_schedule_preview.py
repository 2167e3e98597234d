"""`orbit schedule preview`: what it shows, refuses and warns of, without a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

BERLIN = ("--zone", "Europe/Berlin", "--gap", "NEXT_VALID", "--repeat", "FIRST")


def preview(orbit: Run, *words: str) -> Any:
    result = orbit("schedule", "preview", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_a_plan_is_shown_with_local_time_and_notes(orbit: Run) -> None:
    shown = preview(orbit, "--cron", "30 2 * * *", *BERLIN, "--after", "2026-03-28T00:00:00Z", "--count", "3")
    assert [(fire["utc"], fire["local"]) for fire in shown["fires"]] == [
        ("2026-03-28T01:30:00.000000Z", "2026-03-28T02:30:00+01:00"),
        ("2026-03-29T01:00:00.000000Z", "2026-03-29T03:00:00+02:00"),
        ("2026-03-30T00:30:00.000000Z", "2026-03-30T02:30:00+02:00"),
    ]
    assert [fire["note"] is None for fire in shown["fires"]] == [True, False, True]
    assert len(shown["warnings"]) == 1


def test_text_shows_local_time_offset_utc_and_warnings(orbit: Run) -> None:
    result = orbit(
        *(
            "schedule",
            "preview",
            "--cron",
            "30 2 * * *",
            *BERLIN,
            "--after",
            "2026-03-28T12:00:00Z",
            "-n",
            "1",
        )
    )
    assert result.exit_code == 0
    assert "2026-03-29 03:00:00  +02:00  2026-03-29T01:00:00Z" in result.output
    assert "warning: 2026-03-29" in result.output


def test_a_fixed_rate_keeps_to_its_anchor(orbit: Run) -> None:
    words = ("--every", "15m", "--anchor", "2026-01-01T00:05:00Z", "--after", "2026-01-01T00:06:00Z")
    shown = preview(orbit, *words, "--count", "2")
    assert [fire["utc"][11:16] for fire in shown["fires"]] == ["00:20", "00:35"]


def test_an_outage_shows_what_each_policy_makes_of_it(orbit: Run) -> None:
    words = ("--cron", "0 * * * *", "--down", "2026-05-04T08:00:00Z", "2026-05-04T11:05:00Z")
    down = preview(orbit, *words)["down"]
    policies = down["policies"]
    assert (down["planned"], down["next"]) == (3, "2026-05-04T12:00:00.000000Z")
    assert {name: len(found["runs"]) for name, found in policies.items()} == {
        "SKIP": 0,
        "COALESCE": 1,
        "CATCH_UP": 3,
    }
    assert policies["SKIP"]["records"][0]["count"] == 3
    assert policies["COALESCE"]["runs"][0]["covers"] == 3
    text = orbit("schedule", "preview", *words).output
    assert "MISFIRE_SKIPPED: 3" in text


@pytest.mark.parametrize(
    ("after", "first"),
    [
        ("0001-01-01T00:00:00Z", "1970-01-01"),
        ("9000-12-30T00:00:00Z", "9000-12-30"),
        ("9999-12-31T23:59:59Z", None),
    ],
)
def test_the_first_and_the_last_year_have_an_answer(orbit: Run, after: str, first: str | None) -> None:
    shown = preview(orbit, "--cron", "30 2 * * *", *BERLIN, "--after", after, "--count", "1")
    assert [fire["utc"][:10] for fire in shown["fires"]] == ([first] if first else [])
    ever = ("--down", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z")
    assert preview(orbit, "--every", "1s", "--after", after, "--count", "1", *ever)["down"]["next"] is None


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--cron", "61 * * * *"), "cron.minute"),
        (("--cron", "0 0 30 2 *"), "cron.day_of_month"),
        (("--cron", "* * * *"), "cron"),
        ((), "cron"),
        (("--cron", "* * * * *", "--every", "5m"), "cron"),
        (("--cron", "* * * * *", "--zone", "Europe/Nowhere"), "zone"),
        (("--cron", "* * * * *", "--zone", "Europe/Berlin", "--gap", "LATER", "--repeat", "BOTH"), "gap"),
        (("--cron", "* * * * *", "--zone", "Europe/Berlin", "--gap", "SKIP"), "repeat"),
        (("--cron", "* * * * *", "--after", "yesterday"), "after"),
        (("--cron", "* * * * *", "--count", "0"), "count"),
        (("--cron", "* * * * *", "--anchor", "2026-01-01T00:00:00Z"), "anchor"),
        (("--every", "1500ms"), "every"),
        (("--every", "soon"), "every"),
        (("--every", "5m", "--gap", "SKIP"), "gap"),
        (("--cron", "* * * * *", "--down", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), "down.to"),
    ],
)
def test_what_is_wrong_is_named_and_is_wrong_use(orbit: Run, words: tuple[str, ...], field: str) -> None:
    result = orbit("schedule", "preview", *words, "--json")
    assert result.exit_code == 2
    error = json.loads(result.output)["error"]
    assert error["code"] == "INVALID_ARGUMENT"
    assert error["details"][0]["field"] == field
    assert orbit("schedule", "preview", *words).exit_code == 2
