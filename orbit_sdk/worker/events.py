"""What other threads tell the uplink: small frozen values in one inbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from orbit_sdk.protocol.worker import ResultItem
from orbit_sdk.values.json_strict import Json

__all__ = ["DrainAsked", "Ended", "Event", "HaltAsked", "MarkAsked", "Progressed"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A handler has returned and its slot is free. No result: its lease was gone, there is nothing to say."""

    attempt_id: str
    result: ResultItem | None


@dataclass(frozen=True, slots=True)
class MarkAsked:
    """A handler waits for its mark."""

    attempt_id: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """The latest progress of a handler."""

    attempt_id: str
    value: Json


@dataclass(frozen=True, slots=True)
class DrainAsked:
    """Take nothing new, wait for what runs, then leave."""


@dataclass(frozen=True, slots=True)
class HaltAsked:
    """Leave now."""


Event: TypeAlias = Ended | MarkAsked | Progressed | DrainAsked | HaltAsked
