"""Wire models of published definitions."""

from __future__ import annotations

from pydantic import JsonValue

from orbit_sdk.protocol.common import Answer, Counter, Instant, Managed, OnBehalfOf, Reason, Request


class PublishDefinition(Request):
    """`definition` is the whole document; `side` its optional side table (source places). `current`: also
    point the current version at it. Publishing the same content again is answered as before.
    """

    definition: dict[str, JsonValue]
    side: dict[str, JsonValue] | None = None
    current: bool = False


class CheckDefinition(Request):
    definition: dict[str, JsonValue]


class Finding(Answer):
    code: str
    severity: str
    message: str
    help: str | None = None
    node: str | None = None
    path: str | None = None


class CheckResult(Answer):
    ok: bool
    digest: str | None = None
    findings: list[Finding]


class DefinitionVersion(Answer):
    definition_id: str
    version: int
    digest: str
    title: str | None = None
    current: bool
    retired: bool
    published_at: Instant
    published_by: str
    revision: Counter


class DefinitionDetail(DefinitionVersion):
    definition: dict[str, JsonValue]
    side: dict[str, JsonValue] | None = None


class SetCurrent(Request):
    """Moves the current pointer; `expected_revision` is the pointer's revision seen by the caller."""

    version: int
    reason: Reason | None = None
    on_behalf_of: OnBehalfOf | None = None


class RetireDefinition(Managed):
    """A retired version takes no new starts; running instances go on."""
