"""What a version of a schedule says, ready to compute with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import orjson

from orbit_sdk.calendar.misfire import Misfire, MisfirePolicy
from orbit_sdk.calendar.notes import local_text
from orbit_sdk.calendar.plans import CronPlan, Plan, RatePlan, cron_plan, next_fire
from orbit_sdk.calendar.zones import Zone, load_zone
from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.protocol.common import micros_of
from orbit_sdk.protocol.schedules import CronTiming, RateTiming, ScheduleSpec, TaskTarget, WorkflowTarget
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.instants import Micros, to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.schedules.lifecycle import Overlap
from orbit_server.schedules.templates import check_template

__all__ = ["Spec", "accepted_spec", "stored_spec"]


@dataclass(frozen=True, slots=True)
class Spec:
    """A version's plan and rules. Fires are planned in [start_at, end_at)."""

    plan: Plan
    zone: Zone
    start_at: Micros | None
    end_at: Micros | None
    misfire: MisfirePolicy
    overlap: Overlap
    backlog: int
    target: TaskTarget | WorkflowTarget
    priority_max: int | None = None
    """The highest priority that whoever made the version may give to work."""

    @property
    def target_kind(self) -> str:
        return self.target.kind

    def span(self, after: Micros, until: Micros) -> tuple[Micros, Micros]:
        """(after, until] cut to what the bounds allow."""
        low = after if self.start_at is None else max(after, self.start_at - 1)
        high = until if self.end_at is None else min(until, self.end_at - 1)
        return low, high

    def next_planned(self, after: Micros, until: Micros | None) -> Micros | None:
        """The first planned instant in (after, until] within the bounds."""
        low, high = self.span(after, (1 << 62) if until is None else until)
        at = next_fire(self.plan, low) if low < high else None
        return at if at is not None and at <= high else None

    def local(self, at: Micros) -> str:
        """The instant on the plan's clock, with its offset."""
        return local_text(self.zone, at)


def accepted_spec(asked: ScheduleSpec, effective_at: Micros) -> str:
    """The canonical text of a version, everything that was left open filled in.

    Raises:
        InvalidArgument: naming the field.
    """
    body: dict[str, Any] = ScheduleSpec.model_validate(
        {name: getattr(asked, name) for name in ScheduleSpec.model_fields}
    ).model_dump(mode="json")
    timing = asked.timing
    if isinstance(timing, CronTiming):
        plan = _at("timing", lambda: _cron(timing, effective_at))
        body["timing"]["gap"], body["timing"]["repeat"] = plan.gap.value, plan.repeat.value
    elif timing.anchor is None:
        body["timing"]["anchor"] = to_rfc3339(effective_at)
    text = canonical_json(cast("Json", body))
    spec = _parsed(text)
    _check(asked, spec)
    return text


@lru_cache(maxsize=4_096)
def stored_spec(text: str) -> Spec:
    """The version of a stored text."""
    return _parsed(text)


def _parsed(text: str) -> Spec:
    said = ScheduleSpec.model_validate(orjson.loads(text))
    timing = said.timing
    zone = _at("timing", lambda: load_zone(timing.zone))
    plan: Plan
    if isinstance(timing, CronTiming):
        plan = _at("timing", lambda: _cron(timing, 0))
    else:
        plan = _at("timing", lambda: _rate(timing))
    misfire = said.misfire
    bounds = misfire.catch_up
    policy = Misfire(misfire.policy)
    if (policy is Misfire.CATCH_UP) != (bounds is not None):
        reason = "is required with CATCH_UP" if bounds is None else "belongs to CATCH_UP"
        raise InvalidArgument.at("misfire.catch_up", reason)
    overlap = Overlap(said.overlap.policy)
    if (overlap is Overlap.QUEUE) != (said.overlap.backlog is not None):
        reason = "is required with QUEUE" if overlap is Overlap.QUEUE else "belongs to QUEUE"
        raise InvalidArgument.at("overlap.backlog", reason)
    return Spec(
        plan=plan,
        zone=zone,
        start_at=None if said.start_at is None else micros_of(said.start_at),
        end_at=None if said.end_at is None else micros_of(said.end_at),
        misfire=MisfirePolicy(policy, misfire.after_ms)
        if bounds is None
        else MisfirePolicy(policy, misfire.after_ms, bounds.window_s, bounds.count, bounds.per_minute),
        overlap=overlap,
        backlog=said.overlap.backlog or 0,
        target=said.target,
    )


def _cron(timing: CronTiming, at: Micros) -> CronPlan:
    return cron_plan(timing.cron, timing.zone, timing.gap, timing.repeat, at)


def _rate(timing: RateTiming) -> RatePlan:
    assert timing.anchor is not None
    return RatePlan(timing.every_s, micros_of(timing.anchor))


def _check(asked: ScheduleSpec, spec: Spec) -> None:
    if spec.start_at is not None and spec.end_at is not None and spec.end_at <= spec.start_at:
        raise InvalidArgument.at("end_at", "must be later than start_at")
    target = asked.target
    if isinstance(target, TaskTarget):
        check_template(cast("Json", target.parameters), "target.parameters")
    else:
        check_template(target.input, "target.input")


def _at(prefix: str, make: Any) -> Any:
    """Run `make`, its findings placed under a prefix."""
    try:
        return make()
    except InvalidArgument as error:
        details = [Detail(f"{prefix}.{detail.field}", detail.reason) for detail in error.details]
        raise InvalidArgument(f"{prefix}.{error.message}", details) from None
