"""The rows of signals: a narrow part that is matched, and a body that is written once."""

from __future__ import annotations

import orjson

from orbit_sdk.engine.state import Signal, SignalBody, SignalState
from orbit_sdk.values.ids import Id, derive_id
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.record import record
from orbit_server.storage import tables
from orbit_server.storage.kinds import LockOrder, RowKind


def signal_id(instance_id: Id, key: str) -> Id:
    """A signal's identity is its Idempotency-Key within its instance."""
    return derive_id("signal", instance_id, key)


@record(frozen=True, slots=True)
class SignalRow:
    """The hot part; see `engine.state.Signal`."""

    id: Id
    namespace_id: Id
    instance_id: Id
    signal: str
    match_key: str
    step_key: str | None
    activation_id: Id | None
    state: SignalState
    leftover_of: str | None
    revision: int
    accepted_at: int
    expires_at: int | None
    disposition: str | None
    consumed_step: str | None
    consumed_wait_id: Id | None
    last: int


@record(frozen=True, slots=True)
class SignalBodyRow:
    """What was sent, and by whom, written once. `digest` is of the whole request: a repeat means the same."""

    id: Id
    body: str
    digest: str
    actor: str
    on_behalf_of: str | None
    accepted_at: int
    parameters_version: int
    evidence: str | None


PENDING_SIGNALS: RowKind[SignalRow] = RowKind(
    "signals",
    LockOrder.SIGNALS,
    tables.signals,
    SignalRow,
    owner="instance_id",
    owner_kind="instances",
    live="state = 'PENDING'",
)
SIGNALS_BY_ID: RowKind[SignalRow] = RowKind("signals_by_id", LockOrder.SIGNALS + 1, tables.signals, SignalRow)
BODIES: RowKind[SignalBodyRow] = RowKind("signal_bodies", LockOrder.COLD, tables.signal_bodies, SignalBodyRow)

KINDS = (PENDING_SIGNALS, SIGNALS_BY_ID, BODIES)


def to_signal(row: SignalRow) -> Signal:
    """A signal as the engine knows it."""
    return Signal(
        id=row.id,
        instance_id=row.instance_id,
        signal=row.signal,
        match_key=row.match_key,
        state=row.state,
        accepted_at=row.accepted_at,
        revision=row.revision,
        step_key=row.step_key,
        activation_id=row.activation_id,
        leftover_of=row.leftover_of,
        expires_at=row.expires_at,
        disposition=row.disposition,
        consumed_step=row.consumed_step,
        consumed_wait_id=row.consumed_wait_id,
    )


def signal_row(signal: Signal, namespace_id: Id, now: int) -> SignalRow:
    """The row of a signal."""
    return SignalRow(
        id=signal.id,
        namespace_id=namespace_id,
        instance_id=signal.instance_id,
        signal=signal.signal,
        match_key=signal.match_key,
        step_key=signal.step_key,
        activation_id=signal.activation_id,
        state=signal.state,
        leftover_of=signal.leftover_of,
        revision=signal.revision,
        accepted_at=signal.accepted_at,
        expires_at=signal.expires_at,
        disposition=signal.disposition,
        consumed_step=signal.consumed_step,
        consumed_wait_id=signal.consumed_wait_id,
        last=now,
    )


def signal_meta(signal_id: Id, actor: str, accepted_at: int) -> Json:
    """What a workflow may read about a signal beside its body."""
    return {"actor": actor, "accepted_at": to_rfc3339(accepted_at), "signal_id": signal_id}


def to_body(row: SignalBodyRow) -> SignalBody:
    """The body and the meta of a signal."""
    return SignalBody(orjson.loads(row.body), signal_meta(row.id, row.actor, row.accepted_at))
