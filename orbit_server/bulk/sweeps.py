"""Carrying bulks on: a bite of planning, a bite of applying, whatever their rows say is due.

Any number of servers may do this at once, and one may go on where another was killed: every bite is made of
ordinary commands, and the touched row of the bulk decides.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from sqlalchemy import Connection

from orbit_sdk.errors import Code, OrbitError
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.bulk import queries
from orbit_server.bulk.actions import ACTIONS, Action, Draft
from orbit_server.bulk.candidates import Candidate, adoptable, candidates, heads, tasks_of_evidence
from orbit_server.bulk.decide import SLACK_US
from orbit_server.bulk.items import WHY_MAX, AddItems, ApplyItem, EndBulk, GiveUpItem, Judge, Judged
from orbit_server.bulk.lifecycle import BulkState, ItemState, Target
from orbit_server.bulk.records import BulkRow, ItemRow, SpecRow
from orbit_server.bulk.rows import item_id
from orbit_server.storage.commands import Answered
from orbit_server.storage.database import Database
from orbit_server.weave.reviews.commands import Adopt
from orbit_server.weave.service import send, send_all
from orbit_server.weave.state.running import Weave

__all__ = ["SweepReport", "sweep_bulks"]

log = logging.getLogger(__name__)

_BULKS: Final = 20
_PLAN_BITE: Final = 100
_APPLY_BITE: Final = 50
Purge = Callable[[Connection, Id, int], int]
_LATER: Final = frozenset({Code.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did. `more`: go on at once. `next_at`: when the next bulk is due."""

    seen: int = 0
    moved: int = 0
    failed: int = 0
    more: bool = False
    next_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """What carrying on a bulk takes."""

    database: Database
    weave: Weave
    new_seed: Callable[[], IdSeed]
    purge: Purge


async def sweep_bulks(
    database: Database, weave: Weave, new_seed: Callable[[], IdSeed], purge: Purge, at: int
) -> SweepReport:
    """One bite for every bulk that is due. `purge` takes away a bite of one that is being purged."""
    work = _Work(database, weave, new_seed, purge)
    found = await database.read(lambda conn: queries.due(conn, at, _BULKS))
    moved = failed = 0
    for row in found:
        try:
            moved += await _carry_on(work, row, at)
        except OrbitError as error:
            failed += 1
            log.warning("bulk %s: %s", row.id, error)
    now = await database.now()
    upcoming = await database.read(lambda conn: queries.next_due(conn, now))
    return SweepReport(len(found), moved, failed, more=moved > 0, next_at=upcoming)


async def _carry_on(work: _Work, row: BulkRow, at: int) -> int:
    if row.state is BulkState.APPLYING:
        return await _apply(work, row)
    if row.state is BulkState.PURGING:
        return await work.database.write(lambda conn: work.purge(conn, row.id, at), lane=row.id)
    if row.state is BulkState.PLANNING and row.expires_at > at:
        return await _plan(work, row)
    return int(await send(work.database, work.weave, EndBulk(row.id), background=True))


# --- planning ----------------------------------------------------------------------------------------------


async def _plan(work: _Work, row: BulkRow) -> int:
    """Ask the engine about the next candidates, and add them with what it said."""
    action, spec = ACTIONS[row.action], await _spec(work, row)
    bite = min(_PLAN_BITE, row.most - row.items)
    found: list[Candidate] = await work.database.read(
        lambda conn: candidates(
            conn,
            row.namespace_id,
            row.action,
            action.target,
            orjson.loads(spec.filter),
            after=row.place,
            limit=bite + 1,
        )
    )
    taken = found[:bite]
    adopts = await _adoptable(work, spec, taken)
    drafts = await _drafts(work, row, action, spec, taken, adopts)
    commands = [Judge(action, draft, action.command(draft)) for draft in drafts]
    answers = await send_all(work.database, work.weave, commands, background=True)
    items = [
        _item(row, number, candidate, adopts.get(candidate.place), answer)
        for number, (candidate, answer) in enumerate(zip(taken, answers, strict=True), row.items + 1)
    ]
    place = taken[-1].place if taken else row.place
    command = AddItems(row.id, row.place, items, place, more_left=len(found) > bite)
    return int(await send(work.database, work.weave, command, background=True))


def _item(
    row: BulkRow,
    number: int,
    candidate: Candidate,
    adopt: Adopt | None,
    answer: Answered[Judged] | OrbitError,
) -> ItemRow:
    """Raises Unavailable: what could not be asked now is asked again."""
    if isinstance(answer, OrbitError) and answer.code in _LATER:
        raise answer
    judged = Judged(None, answer) if isinstance(answer, OrbitError) else answer.answer
    error = judged.error
    return ItemRow(
        id=item_id(row.id, candidate.subject_id, candidate.step_key),
        bulk_id=row.id,
        number=number,
        subject_id=candidate.subject_id,
        step_key=candidate.step_key,
        business_key=candidate.business_key,
        expected=candidate.expected,
        state=ItemState.PENDING if error is None else ItemState.REFUSED,
        allowed=error is None,
        then_state=judged.then,
        code=None if error is None else error.code.value,
        why=None if error is None else error.message[:WHY_MAX],
        evidence_id=None if adopt is None else adopt.evidence_id,
    )


async def _adoptable(work: _Work, spec: SpecRow, found: Sequence[Candidate]) -> dict[Id, Adopt]:
    """By place, what each decision adopts where the orders say that it adopts something."""
    orders: dict[str, Any] = orjson.loads(spec.orders)
    if not orders.get("adopt"):
        return {}
    ids = [each.task_id for each in found if each.task_id is not None]
    stored = await work.database.read(
        lambda conn: adoptable(conn, ids, denies=orders["verdict"] != "SUCCEEDED")
    )
    return {
        each.place: Adopt(stored[each.task_id], each.task_id)
        for each in found
        if each.task_id is not None and each.task_id in stored
    }


# --- applying ----------------------------------------------------------------------------------------------


async def _apply(work: _Work, row: BulkRow) -> int:
    """Send the next items; each is done when its turn has come, and only then."""
    action, spec = ACTIONS[row.action], await _spec(work, row)
    bite = max(1, min(_APPLY_BITE, SLACK_US // max(1, row.interval_us)))
    found = await work.database.read(lambda conn: queries.pending(conn, row.id, bite))
    named = [item.evidence_id for item in found if item.evidence_id is not None]
    owners = await work.database.read(lambda conn: tasks_of_evidence(conn, named)) if named else {}
    adopts = {
        item.id: Adopt(item.evidence_id, owners[item.evidence_id])
        for item in found
        if item.evidence_id is not None and item.evidence_id in owners
    }
    drafts = await _drafts(work, row, action, spec, found, adopts)
    commands = [ApplyItem(action, draft, action.command(draft), row.made_by) for draft in drafts]
    answers = await send_all(work.database, work.weave, commands, background=True)
    moved = 0
    for item, answer in zip(found, answers, strict=True):
        if isinstance(answer, Answered):
            moved += bool(answer.answer)
        elif answer.code in _LATER:
            raise answer
        else:
            log.warning("item %s of bulk %s: %s", item.id, row.id, answer)
            command = GiveUpItem(row.id, item.id, answer)
            moved += bool(await send(work.database, work.weave, command, background=True))
    return moved


# --- shared ------------------------------------------------------------------------------------------------


async def _spec(work: _Work, row: BulkRow) -> SpecRow:
    return await work.database.read(lambda conn: queries.spec(conn, row.id))


async def _drafts(  # what each draft is made of
    work: _Work,
    row: BulkRow,
    action: Action,
    spec: SpecRow,
    found: Sequence[Candidate | ItemRow],
    adopts: Mapping[Id, Adopt],
) -> list[Draft]:
    """`adopts`: by place of a candidate, or by id of an item."""
    orders: dict[str, Any] = orjson.loads(spec.orders)
    near: dict[Id, Any] = {}
    if action.target is Target.WORKFLOWS and row.action == "workflow.restart":
        near = await work.database.read(lambda conn: heads(conn, [each.subject_id for each in found]))
    return [
        Draft(
            bulk_id=row.id,
            item_id=item_id(row.id, each.subject_id, each.step_key),
            namespace_id=row.namespace_id,
            subject_id=each.subject_id,
            step_key=each.step_key,
            expected=each.expected,
            orders=orders,
            actor=row.applied_by or row.made_by,
            reason=spec.reason,
            seed=work.new_seed(),
            weave=work.weave,
            near=near,
            on_behalf_of=row.applied_for,
            adopt=adopts.get(each.place if isinstance(each, Candidate) else each.id),
        )
        for each in found
    ]
