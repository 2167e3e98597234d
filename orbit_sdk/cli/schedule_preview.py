"""`orbit schedule preview`: when a plan would fire, worked out here, without a server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from orbit_sdk.calendar.misfire import Judgement, Misfire, MisfirePolicy, judge
from orbit_sdk.calendar.notes import local_text, notes, warnings
from orbit_sdk.calendar.plans import CronPlan, Plan, RatePlan, cron_plan, next_fire, next_fires
from orbit_sdk.calendar.zones import Zone, load_zone, tzdata_version
from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, connected
from orbit_sdk.cli.output import ExitCode, Json, Output
from orbit_sdk.cli.values import duration_ms
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.instants import Micros, from_rfc3339, to_rfc3339

__all__ = ["schedule_preview"]

_COUNT_MAX = 1_000
_SHOWN_RUNS = 20


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was typed, before anything of it is believed."""

    cron: str | None
    every: str | None
    anchor: str | None
    zone: str
    gap: str | None
    repeat: str | None
    after: str | None
    count: str


@dataclass(frozen=True, slots=True)
class _Down:
    """A time without a server, and the bounds of catching up after it."""

    start: Micros
    end: Micros
    window_s: int
    most: int
    per_minute: int

    def policy(self, misfire: Misfire) -> MisfirePolicy:
        return MisfirePolicy(misfire, window_s=self.window_s, count=self.most, per_minute=self.per_minute)


_Timing = tuple[str | None, str | None, str | None, str, str | None, str | None]

Cron = Annotated[str | None, typer.Option("--cron", metavar='"30 2 * * *"', help="Five fields.")]
Every = Annotated[
    str | None, typer.Option("--every", metavar="15m", help="A fixed rate, whole seconds, instead of --cron.")
]
Anchor = Annotated[
    str | None, typer.Option("--anchor", metavar="INSTANT", help="Where the fixed rate is counted from.")
]
ZoneName = Annotated[str, typer.Option("--zone", metavar="Europe/Berlin", help="Whose clock it is.")]
GapOption = Annotated[
    str | None,
    typer.Option("--gap", metavar="SKIP|NEXT_VALID", help="Wall times that the clock jumps over."),
]
RepeatOption = Annotated[
    str | None, typer.Option("--repeat", metavar="FIRST|BOTH", help="Wall times that come twice.")
]


@command(
    'orbit schedule preview --cron "30 2 * * *" --zone Europe/Berlin --gap NEXT_VALID --repeat FIRST '
    "--after 2026-03-28T00:00:00Z --count 5",
    "orbit schedule preview --every 15m --anchor 2026-01-01T00:00:00Z",
    'orbit schedule preview --cron "0 * * * *" --down 2026-05-04T08:00:00Z 2026-05-04T11:05:00Z',
)
def schedule_preview(
    cron: Cron = None,
    every: Every = None,
    anchor: Anchor = None,
    zone: ZoneName = "UTC",
    gap: GapOption = None,
    repeat: RepeatOption = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="INSTANT", help="Show what is later; now by default.")
    ] = None,
    count: Annotated[str, typer.Option("--count", "-n", help="How many instants.")] = "5",
    down: Annotated[
        tuple[str, str] | None,
        typer.Option("--down", metavar="FROM TO", help="Show what each misfire policy makes of an outage."),
    ] = None,
    window: Annotated[
        str, typer.Option("--window", metavar="1d", help="With --down: how far catching up reaches back.")
    ] = "1d",
    most: Annotated[
        str, typer.Option("--most", help="With --down: how many catching up runs at most.")
    ] = "100",
    per_minute: Annotated[
        str, typer.Option("--per-minute", help="With --down: how many catching up starts in a minute.")
    ] = "60",
    stored: Annotated[
        str | None,
        typer.Option("--schedule", metavar="SCHEDULE", help="A stored schedule's plan; asks its server."),
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show when a plan would fire. Works without a server."""
    out = Output(json=json)
    if stored is not None:
        cron, every, anchor, zone, gap, repeat = _stored(stored, url, token)
    asked = _Asked(cron, every, anchor, zone, gap, repeat, after, count)
    try:
        preview = _preview(asked)
        outage = None if down is None else _outage(down, window, most, per_minute)
        shown = preview.document()
        if outage is not None:
            shown["down"] = _down_document(preview.plan, outage)
    except InvalidArgument as error:
        out.error(error)
        raise typer.Exit(ExitCode.WRONG_USE) from None
    if json:
        out.data(shown)
        return
    preview.write(out, shown)
    if outage is not None:
        _write_down(out, shown["down"])


@dataclass(frozen=True, slots=True)
class _Preview:
    """A plan and the instants that were asked for."""

    plan: Plan
    zone: Zone
    after: Micros
    fires: list[Micros]

    def document(self) -> dict[str, Any]:
        said: list[str | None] = [None] * len(self.fires)
        warned: list[str] = []
        if isinstance(self.plan, CronPlan):
            said = notes(self.plan, self.fires)
            warned = warnings(self.plan, self.after, self.fires[-1] if self.fires else self.after)
        fires = [
            {"utc": to_rfc3339(at), "local": local_text(self.zone, at), "note": note}
            for at, note in zip(self.fires, said, strict=True)
        ]
        return {"fires": fires, "warnings": warned}

    def write(self, out: Output, shown: dict[str, Any]) -> None:
        out.line(f"{'LOCAL TIME':<20} {'OFFSET':<7} {'UTC':<21}", "dim")
        for fire in shown["fires"]:
            local, utc = fire["local"], fire["utc"].replace(".000000Z", "Z")
            text = f"{local[:10]} {local[11:19]:<9} {local[19:].lstrip('.0123456789'):<7} {utc:<21}"
            out.line(f"{text}  {fire['note']}".rstrip() if fire["note"] else text.rstrip())
        if not shown["fires"]:
            out.line("nothing is planned after that instant")
        for warning in shown["warnings"]:
            out.line(f"warning: {warning}", "yellow")
        out.line(f"{self.zone.name}, time zone data {tzdata_version()}", "dim")


def _stored(identity: str, url: str | None, token: str | None) -> _Timing:
    """The plan of the newest version of a schedule, as if it had been typed."""
    with connected(url, token) as client:
        timing: Any = client.schedules.get(identity).versions[-1].spec.timing
    if timing.kind == "CRON":
        return timing.cron, None, None, timing.zone, timing.gap, timing.repeat
    anchor = timing.anchor.isoformat().replace("+00:00", "Z")
    return None, f"{timing.every_s}s", anchor, timing.zone, None, None


def _preview(asked: _Asked) -> _Preview:
    start = time.time_ns() // 1_000 if asked.after is None else _instant(asked.after, "after")
    plan = _plan(asked, start)
    count = _whole(asked.count, "count", _COUNT_MAX)
    zone = plan.zone if isinstance(plan, CronPlan) else load_zone(asked.zone)
    return _Preview(plan, zone, start, next_fires(plan, start, count))


def _plan(asked: _Asked, at: Micros) -> Plan:
    if (asked.cron is None) == (asked.every is None):
        raise InvalidArgument.at("cron", "or every must be given, one of them")
    if asked.cron is not None:
        if asked.anchor is not None:
            raise InvalidArgument.at("anchor", "belongs to a fixed rate (every)")
        return cron_plan(asked.cron, asked.zone, asked.gap, asked.repeat, at)
    assert asked.every is not None
    if asked.gap is not None or asked.repeat is not None:
        raise InvalidArgument.at("gap" if asked.gap else "repeat", "belongs to a cron expression")
    every_ms = _duration(asked.every, "every")
    if every_ms % 1_000:
        raise InvalidArgument.at("every", "must be whole seconds")
    anchor = at if asked.anchor is None else _instant(asked.anchor, "anchor")
    return RatePlan(every_ms // 1_000, anchor)


def _outage(down: tuple[str, str], window: str, most: str, per_minute: str) -> _Down:
    start, end = _instant(down[0], "down.from"), _instant(down[1], "down.to")
    if end <= start:
        raise InvalidArgument.at("down.to", "must be later than its beginning")
    return _Down(
        start,
        end,
        max(1, _duration(window, "window") // 1_000),
        _whole(most, "most", 1_000),
        _whole(per_minute, "per_minute", 600),
    )


def _down_document(plan: Plan, down: _Down) -> dict[str, Any]:
    judged = {
        misfire.value: judge(plan, down.policy(misfire), down.start, down.end, down.end)
        for misfire in Misfire
    }
    following = next_fire(plan, down.end)
    return {
        "from": to_rfc3339(down.start),
        "to": to_rfc3339(down.end),
        "planned": plan.count(down.start, down.end),
        "next": None if following is None else to_rfc3339(following),
        "policies": {name: _judgement(found) for name, found in judged.items()},
    }


def _judgement(found: Judgement) -> dict[str, Any]:
    return {
        "runs": [
            {
                "planned": to_rfc3339(run.planned_at),
                "starts": to_rfc3339(run.start_at),
                "late": run.late,
                "covers": run.merged,
            }
            for run in found.runs
        ],
        "records": [
            {
                "reason": cut.reason.value,
                "first": to_rfc3339(cut.first_at),
                "last": to_rfc3339(cut.last_at),
                "count": cut.count,
            }
            for cut in found.cuts
        ],
    }


def _write_down(out: Output, down: dict[str, Any]) -> None:
    out.line()
    out.line(f"Nobody there from {down['from']} to {down['to']}: {down['planned']} instants were planned")
    for name, found in down["policies"].items():
        runs = found["runs"]
        out.line(f"{name}: {len(runs)} run{'' if len(runs) == 1 else 's'}")
        for run in runs[:_SHOWN_RUNS]:
            covers = f", stands for {run['covers']}" if run["covers"] > 1 else ""
            out.line(f"  planned {run['planned']}  starts {run['starts']}{covers}")
        if len(runs) > _SHOWN_RUNS:
            out.line(f"  … and {len(runs) - _SHOWN_RUNS} more")
        for record in found["records"]:
            out.line(f"  {record['reason']}: {record['count']} from {record['first']} to {record['last']}")
    out.line(f"then: {down['next'] or 'nothing'}")


def _instant(text: str, field: str) -> Micros:
    try:
        return from_rfc3339(text)
    except ValueError as error:
        raise InvalidArgument.at(field, str(error)) from None


def _duration(text: str, field: str) -> int:
    try:
        return duration_ms(text, field)
    except typer.BadParameter as error:
        raise InvalidArgument.at(field, f"is not a duration: {error.message}") from None


def _whole(text: str, field: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= most):
        raise InvalidArgument.at(field, f"must be a whole number, 1 to {most}")
    return int(text)
