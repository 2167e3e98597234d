"""The ten rules, in the order and words of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from orbit_server.verify.budgets import (
    BUDGETS,
    EFFECTS,
    beyond_the_definition,
    granted_without_audit,
    repeated_elsewhere,
)
from orbit_server.verify.finding import Finding, Look, Probe
from orbit_server.verify.leases import ONE_LEASE, PERMITS
from orbit_server.verify.moving import MOVING, facts_and_summaries
from orbit_server.verify.once import FINAL, ONCE
from orbit_server.verify.planned import fired_twice, not_accounted, recorded_twice
from orbit_server.verify.stored import TRACED, WHOLE


@dataclass(frozen=True, slots=True)
class Rule:
    """One of the things that must be impossible, and how a stored database would show it."""

    number: int
    title: str
    probes: tuple[Probe, ...]
    looks: tuple[Look, ...] = ()

    def violations(self, conn: Connection) -> Iterator[Finding]:
        """Everything that breaks this rule, at most `finding.MOST` per query."""
        for probe in self.probes:
            yield from probe.run(conn, self.number)
        for look in self.looks:
            for kind, subject, message in look(conn):
                yield Finding(self.number, kind, subject, message)


RULES: Final[tuple[Rule, ...]] = (
    Rule(1, "two valid leases, two starts, or a start after it was forbidden", ONE_LEASE),
    Rule(2, "a permit that outlives its attempt, or a waiter that nobody wakes", PERMITS),
    Rule(3, "something acknowledged that is missing, or something half stored", WHOLE),
    Rule(4, "a successor, a consumption or a report that counted twice", ONCE),
    Rule(5, "something finished that changes, or starts", FINAL),
    Rule(
        6,
        "more rounds or attempts than were allowed",
        BUDGETS,
        (beyond_the_definition, granted_without_audit),
    ),
    Rule(7, "an effect repeated, or denied, without a decision", EFFECTS, (repeated_elsewhere,)),
    Rule(8, "something unfinished that waits for nothing", MOVING, (facts_and_summaries,)),
    Rule(9, "a change without its trace, or an event of a revision that never was", TRACED),
    Rule(
        10,
        "a planned instant that ran twice, or that nobody accounted for",
        (),
        (fired_twice, recorded_twice, not_accounted),
    ),
)


def violations(conn: Connection) -> list[Finding]:
    """Every violation of every rule; empty is good."""
    return [finding for rule in RULES for finding in rule.violations(conn)]
