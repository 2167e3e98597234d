"""What has grown against the figures that were agreed on (a file in the repository)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from orbit_sdk.check.budget.figures import Budget, HandlerBudget
from orbit_sdk.check.diagnostics import Diagnostic, Severity, SideTable
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.words import duration_text
from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.values.json_strict import Json


@dataclass(frozen=True, slots=True)
class _Compared:
    now: Budget
    agreed: Mapping[str, Json] | None


@rule(
    "BUDGET_GREW",
    remedy="Lower the figure, or agree on the new one: write the budget file anew and have it reviewed.",
)
def budget_grew(compared: _Compared) -> Iterator[Finding]:
    """A workflow may cost more than the budget file says."""
    now, agreed = compared.now, compared.agreed
    if agreed is None:
        return
    for name, value, unit in (
        ("longest_ms", now.longest_ms, duration_text),
        ("human_wait_ms", now.human_wait_ms, duration_text),
    ):
        before = agreed.get(name)
        if isinstance(before, int) and value > before:
            yield Finding((), f"{name} of {now.id} grew from {unit(before)} to {unit(value)}.")
    for timer in now.open_timers:
        if timer not in _list(agreed.get("open_timers")):
            yield Finding(
                ("nodes", timer), f"TIMER '{timer}' of {now.id} waits until an instant: no figure bounds it."
            )
    for key, handler in now.handlers.items():
        yield from _handler(now.id, key, handler, _object(_object(agreed.get("handlers")).get(key)))


@rule(
    "BUDGET_OUTAGE_SHORTER",
    remedy="Allow more attempts or longer pauses, or agree on the new figure in the budget file.",
)
def budget_outage_shorter(compared: _Compared) -> Iterator[Finding]:
    """A shorter outage of a handler than the budget file says may need a person."""
    now, agreed = compared.now, compared.agreed
    for key, handler in now.handlers.items():
        known = _object(_object((agreed or {}).get("handlers")).get(key))
        before = known.get("outage_ms")
        if (
            not known
            or handler.outage_ms is None
            or (isinstance(before, int) and handler.outage_ms >= before)
        ):
            continue
        said = duration_text(before) if isinstance(before, int) else "no outage"
        yield Finding(
            ("handlers", key),
            f"An outage of {key} needs a person in {now.id} after {duration_text(handler.outage_ms)}, "
            f"{said} in the budget file.",
        )


@rule(
    "BUDGET_MISSING",
    severity=Severity.WARNING,
    remedy="Write the budget file anew and have it reviewed.",
)
def budget_missing(compared: _Compared) -> Iterator[Finding]:
    """The budget file does not name a workflow."""
    if compared.agreed is None:
        yield Finding((), f"The budget file does not name {compared.now.id}.")


BUDGET_RULES = (budget_grew, budget_outage_shorter, budget_missing)
BUDGET_CODES: Final = tuple(each.code for each in BUDGET_RULES)


def check_budget(
    now: Budget, agreed: Mapping[str, Mapping[str, Json]], side: SideTable | None = None
) -> tuple[Diagnostic, ...]:
    """What has grown. `agreed` is by workflow id, as `parse_agreed` gives it."""
    compared = _Compared(now, agreed.get(now.id))
    return tuple(found for each in BUDGET_RULES for found in each.run(compared, side))


def parse_agreed(document: Json) -> Mapping[str, Mapping[str, Json]]:
    """The budget file's content by workflow id; InvalidArgument when it is none."""
    workflows = document.get("workflows") if isinstance(document, dict) else None
    if not isinstance(workflows, dict):
        raise InvalidArgument("this is no budget file", [Detail("workflows", "must be an object")])
    for name, figures in workflows.items():
        if not isinstance(figures, dict):
            raise InvalidArgument(
                "this is no budget file", [Detail(f"workflows.{name}", "must be an object")]
            )
    return {name: _object(figures) for name, figures in workflows.items()}


def _handler(workflow: str, key: str, now: HandlerBudget, agreed: Mapping[str, Json]) -> Iterator[Finding]:
    if not agreed and now.calls:
        yield Finding(("handlers", key), f"{workflow} uses {key}, which the budget file does not name.")
    for name in ("calls", "attempts", "rounds"):
        value, before = getattr(now, name), agreed.get(name)
        if isinstance(before, int) and value > before:
            yield Finding(("handlers", key), f"{name} of {key} in {workflow} grew from {before} to {value}.")


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
