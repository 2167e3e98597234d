"""What a hello leads to: rights checked, the session's row written, attempts in flight reconciled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from orbit_sdk.protocol import worker as wire
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id
from orbit_sdk.values.names import handler_key
from orbit_server.gateway.parts import GatewayParts
from orbit_server.gateway.rows import (
    SessionRow,
    earlier_sessions,
    live_handlers,
    name_of_namespace,
    open_attempts,
    places_of,
    write_session,
)
from orbit_server.gateway.work import KnownAttempt
from orbit_server.platform.permissions import Principal
from orbit_server.pulse.dispatch.sessions import SessionFacts
from orbit_server.pulse.tasks.attempts import Held
from orbit_server.pulse.tasks.lifecycle import Recovery
from orbit_server.pulse.tasks.reconnect import BindAttempts, Bound

__all__ = ["Greeting", "greet"]

_BOUND_AT_ONCE = 200
_OTHER_TYPES = "other connected workers have other types under this version; give the change a new version"


@dataclass(slots=True)
class Greeting:
    """The session as the dispatcher sees it, the answer for the worker, and the attempts that go on."""

    facts: SessionFacts
    welcome: wire.Welcome
    known: dict[Id, KnownAttempt] = field(default_factory=dict)
    cancelled: list[Id] = field(default_factory=list)


async def greet(parts: GatewayParts, principal: Principal, session_id: Id, hello: wire.Hello) -> Greeting:
    """Open the session. Raises OrbitError when the database cannot do it now: nothing is left open then."""
    now = await parts.database.now()
    since = now - 3 * parts.settings.silence_ms * 1_000
    namespace_id = principal.namespace_id
    name, others = await parts.database.read(
        lambda conn: (name_of_namespace(conn, namespace_id), live_handlers(conn, namespace_id, since))
    )
    refused = [*_refused_queues(hello, principal), *_refused_handlers(hello, others)]
    facts = _facts(principal, session_id, hello, {(item.kind, item.name) for item in refused})
    row = _row(parts, principal, facts, hello, refused)
    await parts.database.write(lambda conn: write_session(conn, row, now), lane=session_id)
    bound = await _reconcile(parts, facts, hello, now)
    welcome = wire.Welcome(
        session_id=session_id,
        namespace=name,
        lease_ms=parts.times.lease_ms,
        heartbeat_ms=parts.settings.heartbeat_ms,
        silence_ms=parts.settings.silence_ms,
        in_flight=[_answer(item.attempt_id, bound.get(item.attempt_id)) for item in hello.in_flight],
        refused=refused,
    )
    greeting = Greeting(facts, welcome)
    kept = {key: one for key, one in bound.items() if one.answer == "CONTINUE"}
    await _remember(parts, greeting, hello, kept)
    return greeting


def _refused_queues(hello: wire.Hello, principal: Principal) -> Iterator[wire.Refused]:
    for name in hello.queues:
        if name not in principal.consume_queues:
            reason = "this credential may not consume from it"
            yield wire.Refused(kind="QUEUE", name=name, reason=reason)


def _refused_handlers(hello: wire.Hello, others: list[str]) -> Iterator[wire.Refused]:
    """One version of a handler has one set of types: whoever came first keeps it while it is connected."""
    digests: dict[str, str] = {}
    for text in others:
        digests.update({key: one["digest"] for key, one in json.loads(text).items()})
    for one in hello.handlers:
        key = handler_key(one.name, one.version)
        if digests.setdefault(key, one.digest) != one.digest:
            yield wire.Refused(kind="HANDLER", name=key, reason=_OTHER_TYPES)


def _facts(
    principal: Principal, session_id: Id, hello: wire.Hello, refused: set[tuple[str, str]]
) -> SessionFacts:
    served = [one for one in hello.handlers if ("HANDLER", handler_key(one.name, one.version)) not in refused]
    return SessionFacts(
        id=session_id,
        namespace_id=principal.namespace_id,
        nonce=hello.nonce,
        worker=hello.worker,
        build=hello.build,
        queues=frozenset(name for name in hello.queues if ("QUEUE", name) not in refused),
        handlers={(one.name, one.version): Recovery(one.recovery) for one in served},
        can_verify=frozenset((one.name, one.version) for one in served if one.verify),
        progress_timeouts={
            (one.name, one.version): one.progress_timeout_ms
            for one in served
            if one.progress_timeout_ms is not None
        },
    )


def _row(
    parts: GatewayParts,
    principal: Principal,
    facts: SessionFacts,
    hello: wire.Hello,
    refused: Sequence[wire.Refused],
) -> SessionRow:
    not_served: dict[str, Any] = {one.name: one.reason for one in refused if one.kind == "HANDLER"}
    handlers: dict[str, Any] = {
        handler_key(one.name, one.version): {
            "recovery": one.recovery,
            "digest": one.digest,
            "verify": one.verify,
        }
        for one in hello.handlers
        if (one.name, one.version) in facts.handlers
    }
    return SessionRow(
        id=facts.id,
        namespace_id=facts.namespace_id,
        credential_id=principal.credential_id,
        node_id=parts.node_id,
        nonce=facts.nonce,
        worker=facts.worker,
        build=facts.build,
        handlers=canonical_json(handlers),
        queues=canonical_json([*sorted(facts.queues)]),
        refused=canonical_json(not_served) if not_served else None,
    )


async def _reconcile(
    parts: GatewayParts, facts: SessionFacts, hello: wire.Hello, now: int
) -> dict[Id, Bound]:
    """Bind what the worker lists; give back what was started for it and never reached it."""
    since = now - 2 * parts.times.lease_ms * 1_000
    listed_ids = {one.attempt_id for one in hello.in_flight}

    def left_over(conn: Connection) -> list[Held]:
        earlier = earlier_sessions(conn, facts.namespace_id, facts.nonce, since)
        return [one.held for one in open_attempts(conn, earlier) if one.held.attempt_id not in listed_ids]

    unlisted = await parts.database.read(left_over)
    listed = [Held(one.task_id, one.attempt_id, one.generation) for one in hello.in_flight]
    bound: dict[Id, Bound] = {}
    for first in range(0, max(len(listed), len(unlisted)), _BOUND_AT_ONCE):
        last = first + _BOUND_AT_ONCE
        command = BindAttempts(
            facts.namespace_id,
            facts.id,
            facts.nonce,
            listed=tuple(listed[first:last]),
            unlisted=tuple(unlisted[first:last]),
            times=parts.times,
        )
        bound.update(await parts.database.committer.submit(command))
    return bound


def _answer(attempt_id: Id, bound: Bound | None) -> wire.Reconciled:
    answer: Any = "STOP" if bound is None else bound.answer
    return wire.Reconciled(
        attempt_id=attempt_id, answer=answer, lease_ms=0 if bound is None else bound.lease_ms
    )


async def _remember(
    parts: GatewayParts, greeting: Greeting, hello: wire.Hello, kept: dict[Id, Bound]
) -> None:
    if not kept:
        return
    listed = [one for one in hello.in_flight if one.attempt_id in kept]
    task_ids = sorted({one.task_id for one in listed})
    places = await parts.database.read(lambda conn: places_of(conn, task_ids))
    for one in listed:
        held = Held(one.task_id, one.attempt_id, one.generation)
        greeting.known[one.attempt_id] = KnownAttempt(held, places[one.task_id].workflow_id)
        if kept[one.attempt_id].cancel_requested:
            greeting.cancelled.append(one.attempt_id)
