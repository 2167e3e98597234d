"""What happens to a group whose transaction fails.

It is tried again from BEGIN, then without what is optional, then taken apart until the guilty
command stands alone.

A COMMIT whose outcome is unknown is answered by running the same commands under the same keys: the second run
finds the work done, or does it. It is never answered by looking.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from orbit_sdk.errors import Internal, OrbitError, Unavailable
from orbit_server.storage.commands import Answered, FinalizerRun, Missing
from orbit_server.storage.dialects import code_name
from orbit_server.storage.entries import Entry, GroupResult, GroupWork
from orbit_server.storage.faults import Fault, TransactionFailed
from orbit_server.storage.group import GroupRunner
from orbit_server.storage.metrics import StorageMetrics
from orbit_server.storage.settings import StorageSettings

log = logging.getLogger(__name__)

T = TypeVar("T")

_ALONE_AFTER = 3
"""Runs that missed rows before a command runs in a group of its own."""
_MISSING_MAX = 6
"""Runs that missed rows before a command is given up as one that cannot be decided."""
_DELAY_FIRST_MS = 10
_DELAY_MAX_MS = 1_000
_RETRY_AFTER_MS = 1_000


class Lane(Protocol):
    """One transaction after the other, on one connection."""

    async def transact(self, fn: Callable[[Connection], T]) -> T:
        """BEGIN, fn, COMMIT. Raises TransactionFailed, after a rollback."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True, eq=False)
class Waiting:
    """A command and the caller who waits for it."""

    entry: Entry
    future: asyncio.Future[Any]
    background: bool
    since_us: int

    @property
    def alone(self) -> bool:
        """Whether it must run in a group of its own."""
        return self.entry.times_missing >= _ALONE_AFTER


@dataclass(slots=True)
class _Climb:
    """One group's way through the ladder."""

    lane: Lane
    until_us: int
    finalizers: Sequence[FinalizerRun] = ()
    finalized: bool | None = False
    again: list[Waiting] | None = None
    hints: list[object] | None = None


class Ladder:
    """Settles groups. After `run` every command of the group has its answer or must run again."""

    def __init__(
        self,
        runner: GroupRunner,
        settings: StorageSettings,
        metrics: StorageMetrics,
        on_fatal: Callable[[str], None],
    ) -> None:
        self._runner = runner
        self._settings = settings
        self._metrics = metrics
        self._on_fatal = on_fatal
        self._random = random.Random(settings.seed)  # noqa: S311  # jitter, not a secret

    async def run(self, lane: Lane, group: Sequence[Waiting]) -> list[Waiting]:
        """Settle the group; those that must run again, with the rows they now name, are returned."""
        commands = [waiting.entry.command for waiting in group]
        finalizers = [
            run for finalizer in self._settings.finalizers if (run := finalizer.open(commands)) is not None
        ]
        climb = _Climb(lane, self._now_us() + self._settings.budget_ms * 1_000, finalizers, again=[])
        try:
            await self._whole(climb, group)
        finally:
            for finalizer_run in finalizers:
                finalizer_run.closed(climb.finalized)
        return climb.again or []

    async def run_alone(self, lane: Lane, fn: Callable[[Connection], T]) -> T:
        """A maintenance transaction under the same rules of retry; the function bears being repeated."""
        until_us = self._now_us() + self._settings.budget_ms * 1_000
        tries = 0
        while True:
            tries += 1
            try:
                return await lane.transact(fn)
            except TransactionFailed as failure:
                self._count(failure)
                if failure.fault is Fault.BROKEN:
                    raise failure.cause from None
                if (
                    failure.fault is Fault.FATAL
                    or tries > self._settings.retries
                    or self._now_us() >= until_us
                ):
                    raise self._unavailable(failure) from failure.cause
                await self._pause(tries)

    # --- the rungs ---

    async def _whole(self, climb: _Climb, group: Sequence[Waiting]) -> None:
        failure = await self._try(climb, group, companions=True, finalizers=climb.finalizers)
        if failure is None:
            return
        optional = climb.finalizers or any(waiting.entry.companion is not None for waiting in group)
        if optional and self._may_go_on(climb, failure):
            failure = await self._try(climb, group, companions=False)
        if failure is not None:
            await self._apart(climb, group, failure)

    async def _apart(self, climb: _Climb, group: Sequence[Waiting], failure: TransactionFailed) -> None:
        """Halve the group until what fails is one command."""
        if len(group) == 1 or not self._may_go_on(climb, failure):
            self._give_up(group, failure)
            return
        middle = len(group) // 2
        for half in (group[:middle], group[middle:]):
            failed = await self._try(climb, half, companions=False)
            if failed is not None:
                await self._apart(climb, half, failed)

    async def _try(
        self,
        climb: _Climb,
        group: Sequence[Waiting],
        *,
        companions: bool,
        finalizers: Sequence[FinalizerRun] = (),
    ) -> TransactionFailed | None:
        """Run the group until it commits, its tries are spent or trying cannot help; the last failure."""
        work = GroupWork([waiting.entry for waiting in group], companions, finalizers)
        tries = 0
        while True:
            tries += 1
            try:
                result = await climb.lane.transact(lambda conn: self._runner.run(conn, work))
            except TransactionFailed as failure:
                self._failed(climb, work, failure)
                spent = tries > self._settings.retries
                if spent or failure.fault is Fault.BROKEN or not self._may_go_on(climb, failure):
                    return failure
                await self._pause(tries if failure.fault is not Fault.DUPLICATE else tries - 1)
            else:
                if finalizers:
                    climb.finalized = True
                self._deliver(climb, group, result)
                return None

    def _may_go_on(self, climb: _Climb, failure: TransactionFailed) -> bool:
        return failure.fault is not Fault.FATAL and self._now_us() < climb.until_us

    def _failed(self, climb: _Climb, work: GroupWork, failure: TransactionFailed) -> None:
        self._count(failure)
        if failure.fault is Fault.UNKNOWN:
            for entry in work.entries:
                entry.after_unknown = True
            if work.finalizers:
                climb.finalized = None

    def _count(self, failure: TransactionFailed) -> None:
        self._metrics.retries[code_name(failure.cause)] += 1
        if failure.fault is Fault.UNKNOWN:
            self._metrics.unknown_commits += 1
        elif failure.fault is Fault.FATAL:
            log.critical("the database can no longer be trusted to keep what it says: %s", failure.cause)
            self._on_fatal(f"the database failed at COMMIT: {failure.cause}")

    async def _pause(self, tries: int) -> None:
        """Full jitter: anything between nothing and a delay that doubles with each try."""
        if tries > 0:
            most = min(_DELAY_MAX_MS, _DELAY_FIRST_MS << tries)
            await asyncio.sleep(self._random.uniform(0, most) / 1_000)

    # --- answers ---

    def _deliver(self, climb: _Climb, group: Sequence[Waiting], result: GroupResult) -> None:
        metrics = self._metrics
        metrics.groups += 1
        metrics.commands += len(group)
        metrics.group_size.observe(len(group))
        metrics.dropped += result.dropped
        for phase, spent in result.phases_us.items():
            metrics.phases[phase].observe(spent)
        metrics.phases["commit"].observe(self._now_us() - result.ended_us)
        for place, waiting in enumerate(group):
            verdict = result.verdicts[place]
            if isinstance(verdict, Missing):
                self._missing(climb, waiting, verdict)
            elif isinstance(verdict, OrbitError):
                metrics.refused += 1
                _settle(waiting, error=verdict)
            else:
                self._accepted(waiting, verdict)
        if result.hints:
            try:
                self._settings.on_commit(result.hints)
            except Exception:
                log.exception("a hint could not be given; loops find the work by themselves")

    def _accepted(self, waiting: Waiting, answered: Answered[Any]) -> None:
        if answered.replayed:
            self._metrics.replayed += 1
        if waiting.entry.after_unknown and waiting.entry.key is not None:
            if answered.replayed:
                self._metrics.unknown_applied += 1
            else:
                self._metrics.unknown_lost += 1
        if not waiting.future.done():
            waiting.future.set_result(answered)

    def _missing(self, climb: _Climb, waiting: Waiting, missing: Missing) -> None:
        self._metrics.missing += 1
        entry = waiting.entry
        entry.add(missing.needs)
        entry.times_missing += 1
        if entry.times_missing >= _MISSING_MAX or not self._runner.known(entry.needs):
            log.error("%s keeps missing rows: %s", type(entry.command).__name__, missing.needs)
            self._metrics.failed += 1
            _settle(waiting, error=Internal(f"{type(entry.command).__name__} keeps missing rows"))
        elif climb.again is not None:
            climb.again.append(waiting)

    def _give_up(self, group: Sequence[Waiting], failure: TransactionFailed) -> None:
        self._metrics.failed += len(group)
        for waiting in group:
            if failure.fault in (Fault.BROKEN, Fault.DUPLICATE):
                name = type(waiting.entry.command).__name__
                log.error("%s could not be stored", name, exc_info=failure.cause)
                error: OrbitError = Internal(f"{name} could not be stored")
            else:
                error = self._unavailable(failure, unknown=waiting.entry.after_unknown)
            error.__cause__ = failure.cause
            _settle(waiting, error=error)

    def _unavailable(self, failure: TransactionFailed, *, unknown: bool = False) -> OrbitError:
        message = "the database does not answer"
        if unknown or failure.fault in (Fault.UNKNOWN, Fault.FATAL):
            message = "the database did not say whether it stored this; repeat it under the same key"
        return Unavailable(message, retry_after_ms=_RETRY_AFTER_MS)

    def _now_us(self) -> int:
        return self._settings.clock.monotonic_us()


def _settle(waiting: Waiting, *, error: OrbitError) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(error)
