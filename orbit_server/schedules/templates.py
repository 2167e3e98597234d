"""What a target's parameters or input take from the fire: `{"$fire": "planned_at"}` anywhere in the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.values.json_strict import Json

__all__ = ["FACTS", "check_template", "render"]

FACTS: Final = (
    "id",
    "planned_at",
    "local_date",
    "local_time",
    "first_at",
    "merged",
    "schedule_id",
    "version",
)
"""What may be taken: the fire's id, its planned instant (RFC 3339 in UTC), date and time on the plan's clock,
the first planned instant and the number of instants that it stands for, the schedule and its version.
"""

_MARK: Final = "$fire"


def check_template(value: Json, field: str) -> None:
    """Refuse what `render` could not fill in. Raises InvalidArgument naming the place."""
    problems = [Detail(place, reason) for place, reason in _problems(value, field)]
    if problems:
        raise InvalidArgument(f"{problems[0].field} {problems[0].reason}", problems)


def render(value: Json, facts: Mapping[str, Json]) -> Json:
    """The value with every mark replaced."""
    if isinstance(value, dict):
        if _MARK in value:
            return facts[str(value[_MARK])]
        return {name: render(part, facts) for name, part in value.items()}
    if isinstance(value, list):
        return [render(part, facts) for part in value]
    return value


def _problems(value: Json, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        if _MARK in value:
            if len(value) > 1:
                yield place, f'has other fields beside "{_MARK}"'
            elif value[_MARK] not in FACTS:
                yield f"{place}.{_MARK}", f"must be one of {', '.join(FACTS)}"
            return
        for name, part in value.items():
            yield from _problems(part, f"{place}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _problems(part, f"{place}[{index}]")
