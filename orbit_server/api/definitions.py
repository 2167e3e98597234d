"""Published definitions: check, publish, read, point to the current version, retire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import orjson

from orbit_sdk.check.diagnostics import Diagnostic
from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.definitions import (
    CheckDefinition,
    CheckResult,
    DefinitionDetail,
    DefinitionVersion,
    PublishDefinition,
    RetireDefinition,
    SetCurrent,
)
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.query import PAGING, name_filter
from orbit_server.api.routes import Route
from orbit_server.weave.definitions import queries
from orbit_server.weave.definitions.commands import Published, RetireVersion, SetCurrentVersion
from orbit_server.weave.definitions.publish import Checked, check_document, publish
from orbit_server.weave.definitions.rows import DefinitionRow


async def checked_document(call: Call) -> Checked:
    """The body's `definition`, checked with this server's limits.

    Checking is pure work of milliseconds to seconds: it is done beside the event loop.
    """
    limits = call.server.settings.limits
    return await asyncio.to_thread(check_document, call.body.definition, limits)


async def _check(call: Call) -> Any:
    checked = await checked_document(call)
    return {
        "ok": not checked.errors,
        "digest": checked.digest,
        "findings": [finding_view(finding) for finding in checked.findings],
    }


def finding_view(finding: Diagnostic) -> dict[str, Any]:
    """One finding (`protocol.definitions.Finding`)."""
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "help": finding.help,
        "path": finding.json_path,
        **({} if finding.node is None else {"node": finding.node}),
    }


async def _publish_version(call: Call) -> Any:
    body: PublishDefinition = call.body
    checked = await checked_document(call)
    published = await publish(
        call.server.database,
        call.server.weave.catalog,
        checked,
        namespace_id=call.namespace_id,
        side=body.side,
        current=body.current,
        actor=call.principal.actor,
        seed=call.seed(),
    )
    return {**_published(published), **_title(checked.definition.title)}


async def _list_versions(call: Call) -> Any:
    paging = call.paging("definitions", (str, int))
    after: Any = paging.after
    rows = await call.server.database.read(
        lambda conn: queries.versions(
            conn, call.namespace_id, call.query.get("definition_id"), after, paging.take
        )
    )
    return paging.page(
        rows,
        lambda found: _version(found.row, current=found.current),
        lambda found: (found.row.definition_id, found.row.version),
    )


async def _get_version(call: Call) -> Any:
    found = await call.server.database.read(
        lambda conn: queries.version(
            conn, call.namespace_id, call.path["definition_id"], call.path["version"]
        )
    )
    if found is None:
        raise NotFound("no such definition version")
    row = found.row
    document = await call.server.database.read(lambda conn: queries.document(conn, row.id))
    if document is None:
        raise NotFound("no such definition version")
    shown = _version(row, current=found.current)
    shown |= _title(json.loads(document.document).get("title"))
    shown["definition"] = orjson.Fragment(document.document)
    if document.side_table is not None:
        shown["side"] = orjson.Fragment(document.side_table)
    return shown


async def _set_current(call: Call) -> Any:
    body: SetCurrent = call.body
    published = await call.server.database.committer.submit(
        SetCurrentVersion(
            namespace_id=call.namespace_id,
            definition_id=call.path["definition_id"],
            version=body.version,
            actor=call.principal.actor,
            reason=body.reason,
            seed=call.seed(),
            on_behalf_of=call.on_behalf_of,
        )
    )
    return _published(published)


async def _retire(call: Call) -> Any:
    body: RetireDefinition = call.body
    published = await call.server.database.committer.submit(
        RetireVersion(
            namespace_id=call.namespace_id,
            definition_id=call.path["definition_id"],
            version=call.path["version"],
            actor=call.principal.actor,
            reason=body.reason,
            seed=call.seed(),
            on_behalf_of=call.on_behalf_of,
        )
    )
    return _published(published)


def _published(published: Published) -> dict[str, Any]:
    return _version(published.row, current=published.current_version == published.row.version)


def _version(row: DefinitionRow, *, current: bool) -> dict[str, Any]:
    return {
        "definition_id": row.definition_id,
        "version": row.version,
        "digest": row.digest,
        "current": current,
        "retired": row.retired_at is not None,
        "published_at": to_rfc3339(row.published_at),
        "published_by": row.published_by,
        "revision": str(row.revision),
    }


def _title(title: str | None) -> dict[str, Any]:
    return {} if title is None else {"title": title}


ROUTES = (
    Route(
        "POST",
        "/v1/definitions",
        "definitions:publish",
        DefinitionVersion,
        _publish_version,
        "Publish a version; the same content again is answered as before",
        body=PublishDefinition,
        idempotency="natural",
    ),
    Route(
        "POST",
        "/v1/definitions/check",
        "definitions:read",
        CheckResult,
        _check,
        "Check a document with this server's limits, without storing it",
        body=CheckDefinition,
        idempotency="natural",
    ),
    Route(
        "GET",
        "/v1/definitions",
        "definitions:read",
        Page[DefinitionVersion],
        _list_versions,
        "List versions, by definition and newest version first",
        query=(*PAGING, name_filter("definition_id", "Only versions of this definition.")),
    ),
    Route(
        "GET",
        "/v1/definitions/{definition_id}/versions/{version}",
        "definitions:read",
        DefinitionDetail,
        _get_version,
        "Read one version with its document",
    ),
    Route(
        "POST",
        "/v1/definitions/{definition_id}/current",
        "definitions:publish",
        DefinitionVersion,
        _set_current,
        "Point the current version at a published one",
        body=SetCurrent,
        idempotency="natural",
    ),
    Route(
        "POST",
        "/v1/definitions/{definition_id}/versions/{version}/retire",
        "definitions:retire",
        DefinitionVersion,
        _retire,
        "Retire a version: it takes no new starts",
        body=RetireDefinition,
        idempotency="natural",
    ),
)
