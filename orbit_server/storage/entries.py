"""Commands on their way through groups, what one transaction is to do with them, and what it decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orbit_sdk.errors import OrbitError
from orbit_sdk.values.ids import Id
from orbit_server.storage.commands import Answered, Command, CommandKey, FinalizerRun, Missing, Needs, Order


def asks(command: Command[Any]) -> bool:
    """Whether a command has a `more` of its own: most have none, and are not asked."""
    own: object = getattr(type(command), "more", None)
    return own is not Order.more


def asks_at(command: Command[Any], kind: str) -> bool:
    """Whether a command asks for more once this kind, which it has named, is loaded."""
    after: frozenset[str] | None = getattr(type(command), "asks_after", None)
    return after is None or kind in after


@dataclass(slots=True, eq=False)
class Entry:
    """A command on its way through groups, with what earlier runs taught about it."""

    command: Command[Any]
    needs: dict[str, dict[Id, None]] = field(default_factory=dict)
    """What it needs, ids named by earlier runs included."""
    times_missing: int = 0
    after_unknown: bool = False
    """An earlier COMMIT of it may have been applied."""
    key: CommandKey | None = field(init=False)
    key_id: Id | None = field(init=False)
    companion: Command[Any] | None = field(init=False)
    asks: bool = field(init=False)
    """Whether it has a `more` of its own."""

    def __post_init__(self) -> None:
        self.add(self.command.needs())
        self.key = self.command.key
        self.key_id = None if self.key is None else self.key.id
        self.companion = getattr(self.command, "companion", None)
        self.asks = asks(self.command)

    def add(self, needs: Needs) -> bool:
        """Name more rows; False when all were named before."""
        grew = False
        for kind, ids in needs.items():
            known = self.needs.setdefault(kind, {})
            for row_id in ids:
                if row_id not in known:
                    known[row_id] = None
                    grew = True
        return grew


Verdict = Answered[Any] | OrbitError | Missing


@dataclass(slots=True)
class GroupWork:
    """What one transaction is to do."""

    entries: Sequence[Entry]
    companions: bool = True
    finalizers: Sequence[FinalizerRun] = ()


@dataclass(slots=True)
class GroupResult:
    """What one transaction decided; it holds once the transaction has committed."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)
    """By place in the group's entries."""
    hints: list[object] = field(default_factory=list)
    now: int = 0
    dropped: int = 0
    ended_us: int = 0
    """Monotonic time when everything was saved, before COMMIT."""
    phases_us: dict[str, int] = field(default_factory=dict)
