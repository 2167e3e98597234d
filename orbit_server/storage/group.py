"""One transaction for a group of commands: keys, touch and load, decide, save.

The number of statements does not depend on the number of commands.

This is a plain function over a connection, run in the writer thread or inside the driver's greenlet. It asks
for nothing but rows and `now`; everything that may differ between two runs of a group is made before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.errors import Internal, OrbitError
from orbit_sdk.values.ids import Id
from orbit_server.storage.book import Book, MissingRow
from orbit_server.storage.commands import (
    Answered,
    Command,
    CommandKey,
    Done,
    Missing,
    Needs,
    Outcome,
    Refused,
)
from orbit_server.storage.entries import Entry, GroupResult, GroupWork, Verdict, asks, asks_at
from orbit_server.storage.idempotency import KeyRow, KeyStore, key_row, probe_row, stored_answer
from orbit_server.storage.kinds import Kind
from orbit_server.storage.pipe import Pipe, piping

log = logging.getLogger(__name__)

_FOLLOW_UPS_MAX = 1_000
"""Follow-ups of one command, follow-ups of follow-ups included; what is beyond is left to stored rows."""


class GroupRunner:
    """Runs groups on the given kinds. `ask_now` asks for the database clock, `monotonic` only measures."""

    def __init__(
        self,
        kinds: Iterable[Kind[Any]],
        keys: KeyStore,
        *,
        ask_now: Callable[[Pipe], Callable[[], int]],
        monotonic_us: Callable[[], int],
    ) -> None:
        ordered = sorted(kinds, key=lambda kind: (kind.order, kind.name))
        self.kinds: Mapping[str, Kind[Any]] = {kind.name: kind for kind in ordered}
        if len(self.kinds) != len(ordered):
            raise ValueError("two kinds have one name")
        self.places = {name: place for place, name in enumerate(self.kinds)}
        self.keys = keys
        self.ask_now = ask_now
        self.monotonic_us = monotonic_us

    def known(self, needs: Mapping[str, object]) -> bool:
        """Whether every named kind is registered."""
        return all(name in self.kinds for name in needs)

    def run(self, conn: Connection, work: GroupWork) -> GroupResult:
        """Everything between BEGIN and COMMIT."""
        with piping(conn) as pipe:
            return _Run(self, conn, pipe, work).run()


class _Run:
    """The state of one run of a group."""

    def __init__(self, runner: GroupRunner, conn: Connection, pipe: Pipe, work: GroupWork) -> None:
        self._kinds = runner.kinds
        self._places = runner.places
        self._keys = runner.keys
        self._ask_now = runner.ask_now
        self._monotonic_us = runner.monotonic_us
        self._conn = conn
        self._pipe = pipe
        self._work = work
        self._asked: list[tuple[str, Sequence[Id], Callable[[], Mapping[Id, Any]]]] = []
        self._book = Book(self._kinds)
        self._result = GroupResult()
        self._stored: Mapping[Id, KeyRow] = {}
        self._new_keys: dict[Id, KeyRow] = {}
        self._probes: dict[Id, KeyRow] = {}
        self._companions: dict[int, Command[Any]] = {}
        self._started_us = 0

    def run(self) -> GroupResult:
        self._started_us = self._monotonic_us()
        self._gather()
        self._last_questions()
        self._phase("load")
        for place, entry in enumerate(self._work.entries):
            if place not in self._result.verdicts or entry.key_id in self._stored:
                self._settle(place, entry)
        self._finalize()
        self._phase("decide")
        self._save()
        self._pipe.flush()
        self._phase("save")
        self._result.ended_us = self._started_us
        self._result.hints = self._book.hints
        return self._result

    def _phase(self, name: str) -> None:
        at = self._monotonic_us()
        self._result.phases_us[name] = at - self._started_us
        self._started_us = at

    # --- keys, touch, load ---

    def _last_questions(self) -> None:
        """Keys and now are read after the rows.

        Whoever sees what an equal request did must also see that request's key; and nobody's now may be older
        than the lock that ordered them.
        """
        ids = {entry.key_id: None for entry in self._work.entries if entry.key_id is not None}
        stored = self._keys.ask(self._conn, self._pipe, list(ids)) if ids else None
        now = self._ask_now(self._pipe)
        self._take_in()
        if stored is not None:
            self._stored = stored()
        self._result.now = now()

    def _gather(self) -> None:
        """Touch and load kind by kind in lock order, what `more` names on the way included."""
        wanted: dict[str, dict[Id, None]] = {name: {} for name in self._kinds}
        asking: list[tuple[int, Entry, dict[str, None]]] = []
        accompanying: list[tuple[Command[Any], dict[str, None]]] = []
        for place, entry in enumerate(self._work.entries):
            for name, ids in entry.needs.items():
                wanted[name].update(ids)
            if self._work.companions and entry.companion is not None:
                self._companions[place] = entry.companion
                needs = entry.companion.needs()
                self._want(wanted, needs)
                if asks(entry.companion):
                    accompanying.append((entry.companion, dict.fromkeys(needs)))
            if entry.asks:
                asking.append((place, entry, dict.fromkeys(entry.needs)))
        for finalizer in self._work.finalizers:
            self._want(wanted, finalizer.needs())
        self._resolve(wanted, asking, accompanying)

    def _resolve(
        self,
        wanted: dict[str, dict[Id, None]],
        asking: Sequence[tuple[int, Entry, dict[str, None]]],
        accompanying: Sequence[tuple[Command[Any], dict[str, None]]],
    ) -> None:
        for name, kind in self._kinds.items():
            self._ask(kind, wanted[name])
            entries = [
                one
                for one in asking
                if name in one[2] and asks_at(one[1].command, name) and one[0] not in self._result.verdicts
            ]
            companions = [one for one in accompanying if name in one[1] and asks_at(one[0], name)]
            if entries or companions:
                self._take_in()
            for place, entry, named in entries:
                self._ask_more(place, entry, named, name, wanted)
            for companion, named in companions:
                self._ask_companion(companion, named, name, wanted)

    def _want(self, wanted: dict[str, dict[Id, None]], needs: Needs) -> None:
        for name, ids in needs.items():
            wanted[name].update(dict.fromkeys(ids))

    def _ask(self, kind: Kind[Any], ids: Mapping[Id, None]) -> None:
        """Touch and ask for rows. Answers are waited for only when somebody names more rows by them."""
        new = sorted(self._book.missing(kind.name, list(ids)))
        if new:
            kind.touch(self._conn, new)
            self._asked.append((kind.name, new, kind.ask(self._conn, self._pipe, new)))

    def _take_in(self) -> None:
        self._pipe.flush()
        for name, ids, rows in self._asked:
            self._book.put(name, ids, rows())
        self._asked.clear()

    def _ask_more(
        self, place: int, entry: Entry, named: dict[str, None], at: str, wanted: dict[str, dict[Id, None]]
    ) -> None:
        """What the loaded rows lead to. Ids of a kind that was already passed wait for the next run."""
        try:
            more = entry.command.more(self._book)
        except MissingRow as missing:
            more = missing.needs
        except OrbitError as error:
            self._answer(place, entry, Refused(error))
            return
        except Exception as error:  # noqa: BLE001  # logged there, and fails this command alone
            self._failed(place, entry, error)
            return
        late: dict[str, list[Id]] = {}
        for name, ids in more.items():
            entry.add({name: ids})
            if self._places[name] > self._places[at]:
                named[name] = None
                wanted[name].update(dict.fromkeys(ids))
            elif unknown := self._book.missing(name, list(ids)):
                late[name] = unknown
        if late:
            self._result.verdicts[place] = Missing(late)

    def _ask_companion(
        self, companion: Command[Any], named: dict[str, None], at: str, wanted: dict[str, dict[Id, None]]
    ) -> None:
        """As `_ask_more`; what cannot be known or comes too late only means that the companion is dropped."""
        try:
            more = companion.more(self._book)
        except MissingRow as missing:
            more = missing.needs
        except OrbitError:
            return  # nothing is wrong: its row waits for a loop, which can load what this process lacks
        except Exception:
            log.exception("%s failed to say what it needs", type(companion).__name__)
            return
        for name, ids in more.items():
            if self._places[name] > self._places[at]:
                named[name] = None
                wanted[name].update(dict.fromkeys(ids))

    # --- decide ---

    def _settle(self, place: int, entry: Entry) -> None:
        if entry.key is not None and entry.key_id is not None:
            row = self._stored.get(entry.key_id) or self._new_keys.get(entry.key_id)
            if row is not None:
                self._result.verdicts[place] = self._replay(entry.key, row)
                return
        mark = self._book.mark()
        try:
            outcome = self._decide(entry.command, entry.needs)
        except Exception as error:  # noqa: BLE001  # logged there, and fails this command alone
            self._book.undo(mark)
            self._failed(place, entry, error)
            return
        if not isinstance(outcome, Done):
            self._book.undo(mark)
        self._answer(place, entry, outcome)
        if isinstance(outcome, Done):
            self._follow(place, outcome)

    def _decide(self, command: Command[Any], needs: Needs) -> Outcome[Any]:
        self._book.now = max(self._result.now, self._book.latest(needs))
        try:
            return command.decide(self._book)
        except MissingRow as missing:
            return Missing(missing.needs)
        except OrbitError as error:
            return Refused(error)

    def _answer(self, place: int, entry: Entry, outcome: Outcome[Any]) -> None:
        key = entry.key
        if isinstance(outcome, Missing):
            self._result.verdicts[place] = outcome
        elif isinstance(outcome, Refused):
            self._result.verdicts[place] = outcome.error
            self._probe(entry)
        else:
            if key is not None:
                self._new_keys[key.id] = key_row(key, outcome, self._book.now)
            self._result.verdicts[place] = Answered(outcome.answer, replayed=False, at=self._book.now)

    def _replay(self, key: CommandKey, row: KeyRow) -> Verdict:
        try:
            return Answered(stored_answer(key, row, self._result.now), replayed=True, at=row.created_at)
        except OrbitError as error:
            return error

    def _failed(self, place: int, entry: Entry, error: Exception) -> None:
        """A bug in one command fails that command alone."""
        log.error("%s failed to decide", type(entry.command).__name__, exc_info=error)
        internal = Internal(f"{type(entry.command).__name__} could not be decided")
        internal.__cause__ = error
        self._result.verdicts[place] = internal
        self._probe(entry)

    def _probe(self, entry: Entry) -> None:
        """After an unknown outcome a key is refused only once no old commit of it can land."""
        key = entry.key
        if entry.after_unknown and key is not None:
            self._probes[key.id] = probe_row(key, self._result.now)

    def _follow(self, place: int, done: Done[Any]) -> None:
        """Companion and follow-ups, each on its own: what stands in the way of one only drops that one."""
        companion = self._companions.get(place)
        waiting = [*([companion] if companion is not None else ()), *done.follow_ups]
        taken = 0
        while waiting and taken < _FOLLOW_UPS_MAX:
            taken += 1
            command = waiting.pop(0)
            mark = self._book.mark()
            try:
                outcome = self._decide(command, command.needs())
            except Exception:
                log.exception("%s failed as a follow-up", type(command).__name__)
                outcome = Missing({})
            if isinstance(outcome, Done):
                waiting.extend(outcome.follow_ups)
            else:
                self._book.undo(mark)
                self._result.dropped += 1
        self._result.dropped += len(waiting)

    def _finalize(self) -> None:
        self._book.now = self._result.now
        for finalizer in self._work.finalizers:
            mark = self._book.mark()
            try:
                self._book.now = max(self._result.now, self._book.latest(finalizer.needs()))
                finalizer.finish(self._book)
            except MissingRow:
                self._book.undo(mark)
                self._result.dropped += 1
            except Exception:
                log.exception("%s failed", type(finalizer).__name__)
                self._book.undo(mark)
                self._result.dropped += 1

    # --- save ---

    def _save(self) -> None:
        """Changed rows in lock order, new rows, keys; keys that only prove absence are removed again."""
        written = self._book.written()
        for kind, _, changed in written:
            if changed:
                kind.save(self._conn, (), changed)
        for kind, inserted, _ in written:
            if inserted:
                kind.save(self._conn, inserted, ())
        for key_id in self._new_keys:
            self._probes.pop(key_id, None)
        rows = sorted([*self._new_keys.values(), *self._probes.values()], key=lambda row: row.id)
        if rows:
            self._keys.save(self._conn, rows, ())
        if self._probes:
            self._keys.remove(self._conn, sorted(self._probes))
