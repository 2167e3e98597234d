"""Time zones as stretches of constant offset.

Rules come through `zoneinfo`: the machine's data where there is some (so that an operator can bring it up to
date without a new release), else the `tzdata` package. Which zones exist is what the package lists, so that
no file that happens to lie beside them is taken for a zone.

Offsets are whole seconds east of Greenwich; instants here are whole seconds since 1970 UTC, wall times are
seconds since 1970-01-01 00:00 on the wall.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final
from zoneinfo import TZPATH, ZoneInfo

from orbit_sdk.errors import InvalidArgument

__all__ = [
    "FIRST_YEAR",
    "LAST_YEAR",
    "Change",
    "Zone",
    "load_zone",
    "tzdata_version",
    "year_of",
    "year_start",
    "zone_names",
]

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 9000
"""Years that plans are computed in."""

_DAY: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()
_CYCLE_YEARS: Final = 400
_CYCLE: Final = 146_097 * _DAY
"""The calendar repeats, weekdays included, after 400 years."""

_RULES_ONLY: Final = 2100
"""No zone lists changes one by one that are as late as this."""

_NO_PLACES: Final = frozenset({"Factory", "localtime", "posixrules"})


@dataclass(frozen=True, slots=True)
class Change:
    """The clock is set: from `at` on, `after` holds instead of `before`."""

    at: int
    before: int
    after: int

    @property
    def gap(self) -> tuple[int, int]:
        """Wall times that do not exist, end excluded; empty when the clock is set back."""
        return self.at + self.before, max(self.at + self.before, self.at + self.after)

    @property
    def repeat(self) -> tuple[int, int]:
        """Wall times that come twice, end excluded; empty when the clock is set forward."""
        return self.at + self.after, max(self.at + self.after, self.at + self.before)


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone of the IANA database."""

    name: str

    def offset(self, at: int) -> int:
        """Seconds east of Greenwich at this instant."""
        return _offset(ZoneInfo(self.name), at)

    def changes(self, year: int) -> tuple[Change, ...]:
        """Changes of the clock in one UTC year, ascending."""
        return _changes(self.name, year)

    def change_before(self, at: int, within: int) -> Change | None:
        """The latest change at or before `at`, if it is not older than `within` seconds."""
        first, last = year_of(at - within), year_of(at)
        found = [
            change
            for year in range(first, last + 1)
            for change in _changes(self.name, year)
            if at - within <= change.at <= at
        ]
        return found[-1] if found else None


def load_zone(name: str) -> Zone:
    """The zone of this name, spelled exactly as in the IANA database.

    Raises:
        InvalidArgument: there is no such zone; the reason names one that differs in case only.
    """
    if name not in zone_names():
        near = next((known for known in zone_names() if known.lower() == name.lower()), None)
        meant = (
            f'; did you mean "{near}"?'
            if near
            else "; names are those of the IANA database, as Europe/Berlin"
        )
        shown = name if len(name) <= 64 else f"{name[:64]}…"
        raise InvalidArgument.at("zone", f'"{shown}" is not a time zone{meant}')
    return Zone(name)


def year_of(at: int) -> int:
    """The UTC year of an instant."""
    return datetime.fromtimestamp(at, UTC).year


def year_start(year: int) -> int:
    """The first second of a UTC year."""
    return (date(year, 1, 1).toordinal() - _EPOCH) * _DAY


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Every zone that plans may name."""
    return frozenset(files("tzdata").joinpath("zones").read_text("ascii").split()) - _NO_PLACES


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """The version of the zone rules in use, as 2026f; "unknown" where the machine's data does not say."""
    for folder in map(Path, TZPATH):
        if (folder / "UTC").exists():
            for name in ("tzdata.zi", "+VERSION"):
                if (folder / name).is_file():
                    with (folder / name).open("r", encoding="ascii", errors="replace") as text:
                        return text.readline(64).split()[-1]
            return "unknown"
    return files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text("ascii").split("\n", 1)[0].split()[-1]


def _offset(info: ZoneInfo, at: int) -> int:
    found = datetime.fromtimestamp(at, info).utcoffset()
    assert found is not None
    return found.days * _DAY + found.seconds


def _changes(name: str, year: int) -> tuple[Change, ...]:
    """Changes of one UTC year. Far ahead only rules are left, and they repeat with the calendar."""
    cycles = max(0, (year - _RULES_ONLY) // _CYCLE_YEARS)
    if cycles == 0:
        return _looked_up(name, year)
    shift = cycles * _CYCLE
    found = _looked_up(name, year - cycles * _CYCLE_YEARS)
    return tuple(Change(change.at + shift, change.before, change.after) for change in found)


@lru_cache(maxsize=16_384)
def _looked_up(name: str, year: int) -> tuple[Change, ...]:
    """The offset is looked at once a day, and closer where it moved."""
    info = ZoneInfo(name)
    start, end = year_start(year), year_start(year + 1)
    found: list[Change] = []
    known = _offset(info, start - 1)
    low = start - 1
    for look in range(start, end + _DAY, _DAY):
        high = min(look, end - 1)
        offset = _offset(info, high)
        if offset != known:
            found.append(_closer(info, low, high, known))
            known = offset
        low = high
    return tuple(found)


def _closer(info: ZoneInfo, low: int, high: int, before: int) -> Change:
    """The one change in (low, high]."""
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(info, middle) == before:
            low = middle
        else:
            high = middle
    return Change(high, before, _offset(info, high))
