"""The rules looked at again and again beside the work, a little at a time. It reads; it never repairs.

One bite is one query of one rule, stopped when it takes too long, or a page of unfinished workflows that the
engine judges. What a bite finds is looked for once more at once: only what stands in both looks is told, so
that nothing that moves in between raises an alarm.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from orbit_sdk.values.ids import Id
from orbit_server.storage.database import Database
from orbit_server.storage.time_limit import TimeOver, time_limit
from orbit_server.verify.finding import MOST, Finding, Look, Probe
from orbit_server.verify.moving import UNFINISHED, facts_and_summaries, judged_page
from orbit_server.verify.rules import RULES

log = logging.getLogger(__name__)

_PAGE: Final = 200

Bite = Callable[[Connection], list[Finding]]


@dataclass(slots=True)
class CheckFigures:
    """What was looked at, by rule. `skipped`: queries that took longer than they may, and were given up."""

    checked: Counter[int] = field(default_factory=Counter)
    skipped: Counter[int] = field(default_factory=Counter)
    passes: int = 0
    finished_at: int | None = None
    """When the last whole pass ended (database time)."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the next bite begins: a check by its number, and within the workflows the last one judged."""

    check: int = 0
    state: int = 0
    after: Id = ""


class Checker:
    """Goes through every rule, one bite for each call of `bite`, and begins anew at the end."""

    def __init__(self, database: Database, limit_ms: int) -> None:
        self.figures = CheckFigures()
        self._database = database
        self._limit_s = limit_ms / 1000
        self._checks = list(_checks())
        self._place = _Place()
        self._known: dict[int, dict[Finding, None]] = {}
        self._fresh: dict[Finding, None] = {}

    @property
    def violations(self) -> Counter[int]:
        """What stands at this moment, by rule; every rule is there."""
        found: Counter[int] = Counter({rule.number: 0 for rule in RULES})
        for findings in self._known.values():
            found.update(finding.rule for finding in findings)
        return found

    async def bite(self, at: int) -> int:
        """Look at the next part; how many violations it shows. `at` is the database's time."""
        place = self._place
        if place.check == len(self._checks):
            found, last = await self._workflows(place)
            self._note(place.check, found, last=last)
            if last:
                self.figures.passes += 1
                self.figures.finished_at = at
            return len(found)
        number, look = self._checks[place.check]
        self._place = _Place(place.check + 1)
        self.figures.checked[number] += 1
        try:
            found = await self._twice(look)
        except TimeOver:
            self.figures.skipped[number] += 1
            return 0
        self._note(place.check, found, last=True)
        return len(found)

    async def _workflows(self, place: _Place) -> tuple[list[Finding], bool]:
        """Judge a page of unfinished workflows; whether it was the last one."""
        state = UNFINISHED[place.state]
        seen: list[Id] = []

        def look(conn: Connection) -> list[Finding]:
            seen[:], found = judged_page(conn, state, place.after, _PAGE)
            return [Finding(_WORKFLOWS, *each) for each in found]

        self.figures.checked[_WORKFLOWS] += 1
        try:
            found = await self._twice(look)
        except TimeOver:
            self.figures.skipped[_WORKFLOWS] += 1
            found = []
        if len(seen) == _PAGE:
            self._place = _Place(place.check, place.state, seen[-1])
        elif place.state + 1 < len(UNFINISHED):
            self._place = _Place(place.check, place.state + 1)
        else:
            self._place = _Place()
            return found, True
        return found, False

    async def _twice(self, look: Bite) -> list[Finding]:
        found = await self._look(look)
        if not found:
            return []
        again = set(await self._look(look))
        return [finding for finding in found if finding in again]

    async def _look(self, look: Bite) -> list[Finding]:
        def limited(conn: Connection) -> list[Finding]:
            with time_limit(conn, self._limit_s):
                return look(conn)

        return await self._database.read(limited)

    def _note(self, check: int, found: list[Finding], *, last: bool) -> None:
        """Remember what a check shows; what was not known before is told once."""
        known = self._known.setdefault(check, {})
        for finding in found:
            if finding not in known and len(known) < MOST:
                known[finding] = None
                log.error(
                    "an invariant is violated: %s",
                    finding,
                    extra={"rule": finding.rule, "kind": finding.kind, "subject": finding.subject},
                )
            self._fresh[finding] = None
        if last:
            self._known[check] = {finding: None for finding in known if finding in self._fresh}
            self._fresh = {}


_WORKFLOWS: Final = 8
"""The rule that the engine's judgement of a workflow belongs to."""


def _checks() -> Iterator[tuple[int, Bite]]:
    """Every query of every rule. The engine's judgement of all workflows is made page by page instead."""
    for rule in RULES:
        for probe in rule.probes:
            yield rule.number, _asking(rule.number, probe)
        for look in rule.looks:
            if look is not facts_and_summaries:
                yield rule.number, _looking(rule.number, look)


def _asking(number: int, probe: Probe) -> Bite:
    return lambda conn: [*probe.run(conn, number)]


def _looking(number: int, look: Look) -> Bite:
    return lambda conn: [Finding(number, *each) for each in islice(look(conn), MOST)]
