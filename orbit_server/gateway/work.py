"""Frames of a worker become commands, posted together; their answers become frames again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from orbit_sdk.errors import NotFound, OrbitError
from orbit_sdk.protocol import worker as wire
from orbit_sdk.protocol.frames import in_parts
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_sdk.values.json_strict import Json
from orbit_server.gateway.parts import GatewayParts
from orbit_server.gateway.rows import places_of
from orbit_server.platform.permissions import Names
from orbit_server.pulse.dispatch.sessions import SessionFacts
from orbit_server.pulse.tasks.attempts import (
    Held,
    KeepProgress,
    MarkEffect,
    RecordResult,
    Renewal,
    RenewLeases,
    StartAttempt,
)
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.storage.commands import Command

__all__ = ["KnownAttempt", "Work"]

T = TypeVar("T")
_LOG = logging.getLogger("orbit.gateway")
_NOT_YOURS = "this session does not hold the attempt"
_NO_SUCH_ATTEMPT = "there is no such attempt"


@dataclass(frozen=True, slots=True)
class KnownAttempt:
    """An attempt that this session was given: pushed to it, or bound to it when it greeted."""

    held: Held
    workflow_id: Id | None
    offered: bool = False
    """Pushed, and its start not granted yet."""
    key: tuple[Id, Id] | None = None
    """Its concurrency key and the key's class."""


class Work:
    """Serves one session. `queues` are those that its credential may consume from; `tell` queues a frame and
    never waits.
    """

    def __init__(
        self,
        parts: GatewayParts,
        facts: SessionFacts,
        queues: Names,
        known: dict[Id, KnownAttempt],
        tell: Callable[[wire.Message], None],
    ) -> None:
        self._parts = parts
        self._facts = facts
        self._queues = queues
        self._known = known
        self._tell = tell
        self._cancel_told: set[Id] = set()

    async def serve(self, message: wire.AnyMessage) -> None:
        """Commands for one frame, and its answer. Refusals of the server are told, never raised."""
        try:
            match message:
                case wire.Start():
                    await self._start(message)
                case wire.Renew():
                    await self._renew(message)
                case wire.Mark():
                    await self._mark(message)
                case wire.Result():
                    await self._result(message)
                case wire.Progress():
                    await self._keep_progress(message)
                case _:
                    pass
        except OrbitError as error:
            self._tell(_error(error, message.type))

    def forget(self, attempt_id: Id) -> None:
        """The attempt is over for this session."""
        self._known.pop(attempt_id, None)
        self._cancel_told.discard(attempt_id)

    def _begun(self, attempt_id: Id) -> None:
        known = self._known.get(attempt_id)
        if known is not None:
            self._known[attempt_id] = replace(known, offered=False)

    def withdraw(self, attempt_ids: Sequence[Id]) -> None:
        """Say that offers must not begin, before the worker asks."""
        for attempt_id in attempt_ids:
            self.forget(attempt_id)
        for part in in_parts(attempt_ids):
            items = [wire.Gone(attempt_id=key, reason="the offer was withdrawn") for key in part]
            self._tell(wire.Withdrawn(items=items))

    def tell_cancel(self, attempt_ids: Iterable[Id], reason: str = "a cancel was asked for") -> None:
        """Each attempt is told once."""
        fresh = [key for key in attempt_ids if key in self._known and key not in self._cancel_told]
        self._cancel_told.update(fresh)
        for part in in_parts(fresh):
            self._tell(wire.Cancel(items=[wire.Gone(attempt_id=key, reason=reason) for key in part]))

    def lose(self, gone: Sequence[wire.Gone]) -> None:
        """Say that attempts are no longer this worker's."""
        for item in gone:
            self.forget(item.attempt_id)
        for part in in_parts(gone):
            self._tell(wire.Lost(items=part))

    def _held(self, claims: Sequence[wire.Claim]) -> tuple[list[Held], list[Id]]:
        """What is held here as named, and the attempts that are not."""
        held, strange = [], []
        for claim in claims:
            known = self._known.get(claim.attempt_id)
            if known is None or known.held.generation != claim.generation:
                strange.append(claim.attempt_id)
            else:
                held.append(known.held)
        return held, strange

    async def _answers(self, commands: Sequence[Command[T]]) -> list[T | OrbitError]:
        """All posted before any is awaited, so that they share a transaction."""
        committer = self._parts.database.committer
        posted = [committer.post(command) for command in commands]
        answered = await asyncio.gather(*posted, return_exceptions=True)
        found: list[T | OrbitError] = []
        for one in answered:
            if isinstance(one, OrbitError):
                found.append(one)
            elif isinstance(one, BaseException):
                raise one
            else:
                found.append(one.answer)
        return found

    async def _start(self, message: wire.Start) -> None:
        held, strange = self._held(message.items)
        facts, times = self._facts, self._parts.times
        commands = [StartAttempt(facts.namespace_id, facts.id, facts.nonce, one, times) for one in held]
        answers = await self._answers(commands)
        granted: list[wire.Granted] = []
        gone = [wire.Gone(attempt_id=key, reason=_NOT_YOURS) for key in strange]
        cancels: list[Id] = []
        for one, answer in zip(held, answers, strict=True):
            if isinstance(answer, OrbitError):
                # Perhaps granted, perhaps not: silence, and the worker gives the offer up with its lease.
                self._tell(_error(answer, "start"))
            elif answer.granted:
                granted.append(wire.Granted(attempt_id=one.attempt_id, lease_ms=answer.lease_ms))
                self._begun(one.attempt_id)
                if answer.cancel_requested:
                    cancels.append(one.attempt_id)
            else:
                self.forget(one.attempt_id)
                gone.append(wire.Gone(attempt_id=one.attempt_id, reason=answer.reason))
        if granted:
            self._tell(wire.Started(number=message.number, items=granted))
        if gone:
            self._tell(wire.Withdrawn(number=message.number, items=gone))
        self.tell_cancel(cancels)

    async def _renew(self, message: wire.Renew) -> None:
        held, strange = self._held(message.items)
        renewed: dict[Id, Renewal | None] = {}
        if held:
            facts = self._facts
            command = RenewLeases(facts.namespace_id, facts.id, tuple(held), self._parts.times)
            renewed.update(await self._parts.database.committer.submit(command))
        kept = {key: one for key, one in renewed.items() if one is not None}
        if kept:
            items = [wire.Granted(attempt_id=key, lease_ms=one.lease_ms) for key, one in kept.items()]
            self._tell(wire.Renewed(number=message.number, items=items))
        lost = [key for key, one in renewed.items() if one is None]
        self.lose([wire.Gone(attempt_id=key, reason=_NOT_YOURS) for key in (*lost, *strange)])
        self.tell_cancel(key for key, one in kept.items() if one.cancel_requested)

    async def _mark(self, message: wire.Mark) -> None:
        held, strange = self._held(message.items)
        facts = self._facts
        commands = [MarkEffect(facts.namespace_id, facts.id, facts.nonce, one) for one in held]
        answers = await self._answers(commands)
        marked = [wire.MarkAnswer(attempt_id=key, answer="LOST") for key in strange]
        for one, answer in zip(held, answers, strict=True):
            if isinstance(answer, OrbitError):
                self._tell(_error(answer, "mark"))
            else:
                said: Any = answer
                marked.append(wire.MarkAnswer(attempt_id=one.attempt_id, answer=said))
        if marked:
            self._tell(wire.Marked(items=marked))

    async def _result(self, message: wire.Result) -> None:
        workflows = await self._workflows(message.items)
        settled: list[wire.SettledItem] = []
        told: list[wire.ResultItem] = []
        commands: list[Command[Any]] = []
        for item in message.items:
            try:
                if item.attempt_id not in workflows:
                    raise NotFound(_NO_SUCH_ATTEMPT)
                commands.append(self._command(item, workflows[item.attempt_id]))
                told.append(item)
            except OrbitError as error:
                settled.append(_settled(item.attempt_id, "REFUSED", error.message))
        commands.extend(self._next_in_line(commands))
        answers = await self._answers(commands)
        for item, answer in zip(told, answers, strict=False):
            if isinstance(answer, OrbitError):
                _LOG.warning("result of attempt %s is not stored yet: %s", item.attempt_id, answer.message)
                self._tell(_error(answer, "result"))
                continue
            settled.append(_settled(item.attempt_id, answer.settled.value, answer.reason))
            self.forget(item.attempt_id)
        if settled:
            self._tell(wire.Settled(items=settled))

    def _next_in_line(self, results: Sequence[Command[Any]]) -> list[Command[Any]]:
        """Whoever stands next for a key that a result frees is admitted right after it, in its transaction as
        a rule. Nothing depends on it: where it comes too early or finds nobody, the row says so.
        """
        found: list[Command[Any]] = []
        for result in results:
            known = self._known.get(result.held.attempt_id) if isinstance(result, RecordResult) else None
            if known is not None and known.key is not None:
                admit = self._parts.lines.next_of(*known.key, lane=result.lane)
                found += [] if admit is None else [admit]
        return found

    def _command(self, item: wire.ResultItem, workflow_id: Id | None) -> RecordResult:
        """Raises InvalidArgument when what is told cannot be stored exactly."""
        make = self._parts.companion_of
        companion = None if make is None or workflow_id is None else make(item.task_id, workflow_id)
        return RecordResult(
            namespace_id=self._facts.namespace_id,
            held=Held(item.task_id, item.attempt_id, item.generation),
            report=report_of(_told(item)),
            lane=workflow_id or item.task_id,
            companion=companion,
            times=self._parts.times,
            nonce=self._facts.nonce,
        )

    async def _workflows(self, items: Sequence[wire.ResultItem]) -> dict[Id, Id | None]:
        """Attempt id -> workflow, from memory; read for attempts of earlier sessions.

        Without those of queues that this credential may not consume from.
        """
        found = {
            one.attempt_id: known.workflow_id for one in items if (known := self._known.get(one.attempt_id))
        }
        strange = [one for one in items if one.attempt_id not in found]
        if strange:
            task_ids = sorted({one.task_id for one in strange})
            read = await self._parts.database.read(lambda conn: places_of(conn, task_ids))
            for one in strange:
                place = read.get(one.task_id)
                if place is None or place.queue in self._queues:
                    found[one.attempt_id] = None if place is None else place.workflow_id
        return found

    async def _keep_progress(self, message: wire.Progress) -> None:
        """Stored for the next attempt. Only a numbered one is answered, with the leases that it renewed."""
        kept = []
        for item in message.items:
            known = self._known.get(item.attempt_id)
            if known is not None:
                kept.append((known.held, canonical_json(item.value)))
        if kept:
            facts = self._facts
            command = KeepProgress(facts.namespace_id, facts.id, tuple(kept), self._parts.times)
            answers = await self._parts.database.committer.submit(command)
            items = [
                wire.Granted(attempt_id=key, lease_ms=ms) for key, ms in answers.items() if ms is not None
            ]
            if items and message.number is not None:
                self._tell(wire.Renewed(number=message.number, items=items))


def _told(item: wire.ResultItem) -> Told:
    details: Json = item.details
    if item.digest is not None or item.size is not None:
        details = {"details": item.details, "digest": item.digest, "size": item.size}
    return Told(
        said=Said(item.outcome),
        result=item.result,
        code=item.code,
        message=item.message or "",
        details=details,
        effect_unknown=item.effect == "UNKNOWN",
        retry_after_ms=item.retry_after_ms,
        asked_generation=item.asked_generation,
    )


def _settled(attempt_id: Id, answer: Any, reason: str) -> wire.SettledItem:
    return wire.SettledItem(attempt_id=attempt_id, answer=answer, reason=reason[:1_000] or None)


def _error(error: OrbitError, about: str) -> wire.Error:
    return wire.Error(code=error.code.value, message=error.message[:1_000], about=about)
