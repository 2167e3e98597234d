"""Deciding without doing: the same command, on rows that are touched and then left as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orbit_sdk.engine.decision import Decision
from orbit_sdk.values.json_strict import Json
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Command, Done, Keyless, Needs, Outcome, Refused
from orbit_server.storage.commands import Missing as MissingRows
from orbit_server.weave.rehearsal.forecast import forecast_of


class Considered(Command[Mapping[str, Json]], Protocol):
    """A command that can say what the engine would decide, without writing it."""

    def consider(self, book: Book) -> Decision | Refused | MissingRows:
        """The engine's decision on what is there now."""
        ...


@dataclass(frozen=True, slots=True)
class Rehearse(Keyless):
    """Decide a command and take everything back. The answer is that of the command with a `forecast`.

    It binds no key: the same key may be used for doing it afterwards. What is refused here would be refused
    then, as long as nothing moves in between.
    """

    command: Considered

    @property
    def lane(self) -> str:
        return self.command.lane

    def needs(self) -> Needs:
        return self.command.needs()

    def more(self, book: Book) -> Needs:
        return self.command.more(book)

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        mark = book.mark()
        decision = self.command.consider(book)
        if isinstance(decision, Refused | MissingRows):
            return decision
        outcome: Outcome[Any] = self.command.decide(book)
        book.undo(mark)
        if not isinstance(outcome, Done):
            return outcome
        return Done({**outcome.answer, "forecast": forecast_of(decision)})
