"""Credentials: created with named rights, listed, revoked. The token itself is never stored."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, select

from orbit_sdk.errors import Detail, InvalidArgument, NotFound, PermissionDenied
from orbit_sdk.values.canonical import canonical_json, digest
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import is_name, is_queue_name
from orbit_server.platform.audit import AUDIT, AuditRow
from orbit_server.platform.permissions import PERMISSIONS, Names, Principal, SignalRights, signal_right
from orbit_server.storage import tables
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Keyless, Needs, Order, Outcome, Refused
from orbit_server.storage.kinds import LockOrder, RowKind


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """`permissions` and the three lists of names are canonical JSON lists of texts."""

    id: Id
    namespace_id: Id
    name: str
    token_hash: str
    permissions: str
    queues_submit: str
    queues_consume: str
    definitions_signal: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    created_by: Id | None
    priority_max: int | None = None


CREDENTIALS: RowKind[CredentialRow] = RowKind(
    "credentials", LockOrder.NAMESPACES + 1, tables.credentials, CredentialRow
)
_COLUMNS = [tables.credentials.c[name] for name in CredentialRow.__dataclass_fields__]


@dataclass(frozen=True, slots=True)
class CredentialRevoked:
    """Hint: whoever knows this credential forgets it, and its live sessions end."""

    credential_id: Id


@dataclass(frozen=True, slots=True)
class Rights:
    """What a credential may do; lists of names may hold `"*"` for every name, and `signal_definitions` single
    signals (`permissions.SignalRights`).
    """

    permissions: tuple[str, ...]
    submit_queues: tuple[str, ...] = ()
    consume_queues: tuple[str, ...] = ()
    signal_definitions: tuple[str, ...] = ()
    priority_max: int | None = None
    """The highest priority it may submit with; None: any."""

    def check(self) -> None:
        """Raises InvalidArgument naming every unknown permission and impossible name."""
        problems = [
            Detail(f"permissions[{place}]", f"{name!r} is not a permission")
            for place, name in enumerate(self.permissions)
            if name not in PERMISSIONS
        ]
        for field, names, good in (
            ("submit_queues", self.submit_queues, is_queue_name),
            ("consume_queues", self.consume_queues, is_queue_name),
        ):
            problems += [
                Detail(f"{field}[{place}]", f"{name!r} is not a name, nor '*'")
                for place, name in enumerate(names)
                if name != "*" and not good(name)
            ]
        problems += [
            Detail(
                f"signal_definitions[{place}]",
                f"{text!r} is not a definition, nor definition:signal, with '*' for every name",
            )
            for place, text in enumerate(self.signal_definitions)
            if not _is_signal_right(text)
        ]
        if problems:
            raise InvalidArgument(f"{problems[0].field}: {problems[0].reason}", problems)

    def check_within(self, giver: Principal) -> None:
        """Nobody gives what they do not have: raises PermissionDenied."""
        beyond = sorted(set(self.permissions) - giver.permissions)
        for given, own in (
            (self.submit_queues, giver.submit_queues),
            (self.consume_queues, giver.consume_queues),
        ):
            beyond += sorted(name for name in given if name not in own)
        beyond += sorted(
            text for text in self.signal_definitions if not giver.signals.covers(*signal_right(text))
        )
        most = giver.priority_max
        if most is not None and (self.priority_max is None or self.priority_max > most):
            beyond.append(f"a priority above {most}")
        if beyond:
            raise PermissionDenied(f"this credential cannot give what it lacks: {', '.join(beyond)}")

    def to_json(self) -> dict[str, Json]:
        found: dict[str, Json] = {
            "permissions": list(self.permissions),
            "submit_queues": list(self.submit_queues),
            "consume_queues": list(self.consume_queues),
            "signal_definitions": list(self.signal_definitions),
        }
        return found if self.priority_max is None else {**found, "priority_max": self.priority_max}


@dataclass(frozen=True, slots=True)
class CreateCredential(Order):
    """Store a credential whose token the caller has made. The answer is the credential's id.

    `id` is made with the token: an answer with another id is that of an earlier request, whose token was
    shown. `seed` makes the id of the audit row. `key` is None offline.
    """

    id: Id
    namespace_id: Id
    name: str
    token_hash: str
    rights: Rights
    expires_at: int | None
    actor: str
    created_by: Id | None
    seed: IdSeed
    key: CommandKey | None

    @property
    def lane(self) -> str:
        return self.id

    def needs(self) -> Needs:
        return {CREDENTIALS.name: (self.id,)}

    def decide(self, book: Book) -> Outcome[dict[str, Any]]:
        if book.get(CREDENTIALS, self.id) is not None:  # an earlier run of this very command was committed
            return Done({"id": self.id}, subject_id=self.id)
        if self.expires_at is not None and self.expires_at <= book.now:
            return Refused(InvalidArgument.at("expires_at", "lies in the past"))
        book.insert(CREDENTIALS, self._row(book.now))
        book.insert(
            AUDIT,
            AuditRow(
                id=self.seed.nth(0),
                namespace_id=self.namespace_id,
                at=book.now,
                actor=self.actor,
                action="credential.created",
                subject_kind="credential",
                subject_id=self.id,
                after_digest=digest(self.rights.to_json()),
                details=canonical_json({"name": self.name, "rights": self.rights.to_json()}),
            ),
        )
        return Done({"id": self.id}, subject_id=self.id)

    def _row(self, now: int) -> CredentialRow:
        return CredentialRow(
            id=self.id,
            namespace_id=self.namespace_id,
            name=self.name,
            token_hash=self.token_hash,
            permissions=canonical_json(list(self.rights.permissions)),
            queues_submit=canonical_json(list(self.rights.submit_queues)),
            queues_consume=canonical_json(list(self.rights.consume_queues)),
            definitions_signal=canonical_json(list(self.rights.signal_definitions)),
            created_at=now,
            expires_at=self.expires_at,
            revoked_at=None,
            created_by=self.created_by,
            priority_max=self.rights.priority_max,
        )


@dataclass(frozen=True, slots=True)
class RevokeCredential(Keyless):
    """End a credential for good; revoking it again changes nothing."""

    id: Id
    namespace_id: Id
    actor: str
    reason: str
    seed: IdSeed
    on_behalf_of: str | None = None

    @property
    def lane(self) -> str:
        return self.id

    def needs(self) -> Needs:
        return {CREDENTIALS.name: (self.id,)}

    def decide(self, book: Book) -> Outcome[CredentialRow]:
        row = book.get(CREDENTIALS, self.id)
        if row is None or row.namespace_id != self.namespace_id:
            return Refused(NotFound("no such credential"))
        if row.revoked_at is None:
            row = book.change(CREDENTIALS, row, replace(row, revoked_at=book.now))
            book.insert(
                AUDIT,
                AuditRow(
                    id=self.seed.nth(0),
                    namespace_id=self.namespace_id,
                    at=book.now,
                    actor=self.actor,
                    action="credential.revoked",
                    subject_kind="credential",
                    subject_id=self.id,
                    on_behalf_of=self.on_behalf_of,
                    reason=self.reason,
                ),
            )
        book.after_commit(CredentialRevoked(self.id))
        return Done(row)


def find_by_hash(conn: Connection, hashed: str) -> CredentialRow | None:
    """The credential of a token, or None."""
    found = conn.execute(select(*_COLUMNS).where(tables.credentials.c.token_hash == hashed)).first()
    return None if found is None else _row(found)


def find_credential(conn: Connection, credential_id: Id) -> CredentialRow | None:
    """The credential of this id, or None."""
    found = conn.execute(select(*_COLUMNS).where(tables.credentials.c.id == credential_id)).first()
    return None if found is None else _row(found)


def list_credentials(
    conn: Connection, namespace_id: Id, before: Id | None, limit: int
) -> list[CredentialRow]:
    """A page of a namespace's credentials, newest first; `before` is the last one seen."""
    table = tables.credentials
    query = select(*_COLUMNS).where(table.c.namespace_id == namespace_id)
    if before is not None:
        query = query.where(table.c.id < before)
    return [_row(found) for found in conn.execute(query.order_by(table.c.id.desc()).limit(limit))]


def principal_of(row: CredentialRow) -> Principal:
    """The rights of a stored credential. Raises ValueError when the row is damaged."""
    return Principal(
        credential_id=row.id,
        namespace_id=row.namespace_id,
        name=row.name,
        permissions=frozenset(_names(row.permissions)),
        submit_queues=Names.of(_names(row.queues_submit)),
        consume_queues=Names.of(_names(row.queues_consume)),
        signals=SignalRights.of(_names(row.definitions_signal)),
        expires_at=row.expires_at,
        priority_max=row.priority_max,
    )


def _is_signal_right(text: str) -> bool:
    definition, colon, signal = text.partition(":")
    names = [definition, signal] if colon else [definition]
    return all(name == "*" or is_name(name) for name in names)


def _names(text: str) -> Iterable[str]:
    names = json.loads(text)
    return (str(name) for name in names)


def _row(found: Iterable[Any]) -> CredentialRow:
    return CredentialRow(*found)
