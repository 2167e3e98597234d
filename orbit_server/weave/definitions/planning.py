"""What publishing a document would mean: new, the same, or a conflict; what changes; what workers lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from sqlalchemy import Connection

from orbit_sdk.check.diff import Change, compare
from orbit_sdk.definition.handler_types import handler_types_digest
from orbit_sdk.definition.models import Definition, load_definition
from orbit_sdk.definition.nodes import PollNode, TaskNode
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import parse_json
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_server.pulse.workers.offers import RECENT_US, Offering, offerings
from orbit_server.weave.definitions import queries
from orbit_server.weave.definitions.publish import Checked


class Outcome(StrEnum):
    """What publishing would do. SAME: it is published with this very content. CONFLICT: with another."""

    NEW = "NEW"
    SAME = "SAME"
    CONFLICT = "CONFLICT"


class Lack(StrEnum):
    """Why no worker could run a step's handler."""

    NO_WORKER = "NO_WORKER"
    OTHER_TYPES = "OTHER_TYPES"
    OTHER_QUEUE = "OTHER_QUEUE"
    BUILD_BLOCKED = "BUILD_BLOCKED"


@dataclass(frozen=True, slots=True)
class Lacking:
    """A handler that no worker, connected or gone a moment ago, offers on the queue of a step."""

    handler: str
    queue: str
    reason: Lack
    message: str


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What is published of the definition, and what workers offer. `before`: what it is compared with."""

    digest: str | None
    retired: bool
    current_version: int | None
    latest_version: int | None
    before: Definition | None
    workers: tuple[Offering, ...]


Changes: TypeAlias = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """`changes` are those since `compared_with`: the current version, or the latest where none is current."""

    outcome: Outcome
    facts: PlanFacts
    changes: Changes
    lacking: tuple[Lacking, ...]

    @property
    def compared_with(self) -> int | None:
        return None if self.facts.before is None else self.facts.before.version


def read_facts(conn: Connection, namespace_id: Id, definition: Definition, now: int) -> PlanFacts:
    """Read what `plan_of` needs, at one moment."""
    row = queries.version(conn, namespace_id, definition.id, definition.version)
    pointed = queries.pointer(conn, namespace_id, definition.id)
    current, latest = (None, None) if pointed is None else pointed
    before = None
    with_ = latest if current is None else current
    if with_ is not None:
        found = queries.version(conn, namespace_id, definition.id, with_)
        document = None if found is None else queries.document(conn, found.row.id)
        before = None if document is None else _parsed(document.document)
    workers = tuple(offerings(conn, namespace_id, left_since=now - RECENT_US))
    return PlanFacts(
        None if row is None else row.row.digest,
        row is not None and row.row.retired_at is not None,
        current,
        latest,
        before,
        workers,
    )


def plan_of(checked: Checked, facts: PlanFacts) -> PublishPlan:
    """Judge a checked document. Changes and workers are looked at only when it has no errors."""
    outcome = Outcome.NEW
    if facts.digest is not None:
        outcome = Outcome.SAME if facts.digest == checked.digest else Outcome.CONFLICT
    if checked.errors:
        return PublishPlan(outcome, facts, (), ())
    changes = () if facts.before is None else compare(facts.before, checked.definition)
    return PublishPlan(outcome, facts, changes, tuple(lacking(checked.definition, facts.workers)))


def lacking(definition: Definition, workers: Sequence[Offering]) -> Iterator[Lacking]:
    """Every handler that a step runs on its queue and that no worker offers there with these types."""
    wanted = {
        (node.handler, node.queue)
        for node in definition.nodes.values()
        if isinstance(node, TaskNode | PollNode)
    }
    for handler, queue in sorted(wanted):
        found = _lack(handler, queue, handler_types_digest(definition, handler), workers)
        if found is not None:
            yield Lacking(handler, queue, *found)


def _lack(handler: str, queue: str, digest: str, workers: Sequence[Offering]) -> tuple[Lack, str] | None:
    offering = [each for each in workers if handler in each.digests]
    if not offering:
        name = handler.partition("@")[0] + "@"
        others = sorted({key for each in workers for key in each.digests if key.startswith(name)})
        known = f" (offered: {', '.join(others)})" if others else ""
        return Lack.NO_WORKER, f"no worker offers {handler}{known}: start one that does"
    same = [each for each in offering if each.digests[handler] == digest]
    if not same:
        said = "with other types of parameters or result: deploy the workers that have these"
        return Lack.OTHER_TYPES, f"workers offer {handler} {said}, or raise the handler's version"
    there = [each for each in same if queue in each.queues]
    if not there:
        queues = ", ".join(sorted({name for each in same for name in each.queues}))
        return Lack.OTHER_QUEUE, f"workers with {handler} take work from {queues}, not from {queue}"
    if all(each.blocked for each in there):
        builds = ", ".join(sorted({each.build or "-" for each in there}))
        return Lack.BUILD_BLOCKED, f"{handler} is offered by blocked builds only: {builds}"
    return None


def _parsed(text: str) -> Definition:
    return load_definition(
        parse_json(text, max_bytes=DEFAULT_LIMITS.document_bytes, max_depth=DEFAULT_LIMITS.json_depth)
    )
