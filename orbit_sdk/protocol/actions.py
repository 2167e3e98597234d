"""What the owner of a `Link` is told to do: frozen values, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import Fault
from orbit_sdk.protocol.worker import AnyMessage, Error, Message

__all__ = [
    "Action",
    "Begin",
    "CancelAsked",
    "Close",
    "Deliver",
    "Freed",
    "Leaving",
    "MarkDecided",
    "Opened",
    "ResultSettled",
    "Stop",
    "Told",
    "Write",
]


@dataclass(frozen=True, slots=True)
class Write:
    """Send this frame."""

    message: Message


@dataclass(frozen=True, slots=True)
class Deliver:
    """Server: a message in order, to be turned into commands."""

    message: AnyMessage


@dataclass(frozen=True, slots=True)
class Close:
    """Send `error`, then close the socket with this code. Nothing more is received or sent."""

    code: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class Opened:
    """Client: the server accepted the session."""

    welcome: wire.Welcome


@dataclass(frozen=True, slots=True)
class Begin:
    """Client: this attempt is started and leased; run its handler."""

    offer: wire.OfferItem


@dataclass(frozen=True, slots=True)
class Freed:
    """Client: an offer that was asked for will not begin; its slot is free."""

    attempt_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Client: the lease of a running attempt is gone; its handler must stop."""

    attempt_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Client: somebody asked this attempt to stop; it still owns its lease."""

    attempt_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class MarkDecided:
    """Client: whether the effect may begin."""

    attempt_id: str
    answer: str


@dataclass(frozen=True, slots=True)
class ResultSettled:
    """Client: this result need not be sent again."""

    attempt_id: str
    answer: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Leaving:
    """The other end drains: a server will close soon, a worker wants no more offers."""

    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """The other end refused something."""

    error: Error


Action: TypeAlias = (
    Write | Deliver | Close | Opened | Begin | Freed | Stop | CancelAsked | MarkDecided | ResultSettled
    | Leaving | Told
)  # fmt: skip
