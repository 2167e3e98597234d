"""Versions in life: drafts, what publishing would mean, and which versions are still in use."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from orbit_sdk.check.diff import worst
from orbit_sdk.errors import NotFound
from orbit_sdk.protocol.common import Page
from orbit_sdk.protocol.versions import (
    Draft,
    DraftDetail,
    KeepDraft,
    PlanDefinition,
    PublishPlan,
    VersionsInUse,
)
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.api.call import Call
from orbit_server.api.definitions import checked_document, finding_view
from orbit_server.api.query import PAGING, name_filter
from orbit_server.api.routes import Route
from orbit_server.api.workflows import present
from orbit_server.weave.definitions import drafts, planning, queries, usage
from orbit_server.weave.definitions.rows import DraftRow, draft_key

VERSIONS_MAX: Final = 500


async def _keep_draft(call: Call) -> Any:
    body: KeepDraft = call.body
    made = await drafts.keep_draft(
        call.server.database,
        call.server.weave.catalog,
        await checked_document(call),
        namespace_id=call.namespace_id,
        side=body.side,
        actor=call.principal.actor,
        seed=call.seed(),
    )
    return _draft(made)


async def _list_drafts(call: Call) -> Any:
    paging = call.paging("drafts", (str, int, str))
    after: Any = paging.after
    rows = await call.server.database.read(
        lambda conn: drafts.page(conn, call.namespace_id, call.query.get("definition_id"), after, paging.take)
    )
    return paging.page(rows, _draft, lambda row: (row.definition_id, row.made_at, row.id))


async def _get_draft(call: Call) -> Any:
    key = draft_key(call.namespace_id, call.path["definition_id"], call.path["digest"])
    row, document = await call.server.database.read(
        lambda conn: (drafts.draft(conn, key), queries.document(conn, key))
    )
    if row is None or document is None:
        raise NotFound("no such draft")
    shown: dict[str, Any] = {**_draft(row), "definition": orjson.Fragment(document.document)}
    if document.side_table is not None:
        shown["side"] = orjson.Fragment(document.side_table)
    return shown


def _draft(row: DraftRow) -> dict[str, Any]:
    return {
        "definition_id": row.definition_id,
        "version": row.version,
        "digest": row.digest,
        "made_at": to_rfc3339(row.made_at),
        "made_by": row.made_by,
        "used": row.used_at is not None,
    }


async def _plan(call: Call) -> Any:
    checked = await checked_document(call)
    now = await call.server.database.now()
    facts = await call.server.database.read(
        lambda conn: planning.read_facts(conn, call.namespace_id, checked.definition, now)
    )
    plan = await asyncio.to_thread(planning.plan_of, checked, facts)
    view: dict[str, Any] = {
        "definition_id": checked.definition.id,
        "version": checked.definition.version,
        "digest": checked.digest,
        "ok": not checked.errors,
        "outcome": plan.outcome.value,
        "retired": facts.retired,
        "current_version": facts.current_version,
        "latest_version": facts.latest_version,
        "compared_with": plan.compared_with,
        "verdict": worst(plan.changes).value,
        "changes": [each.to_json() for each in plan.changes],
        "lacking": [
            {
                "handler": each.handler,
                "queue": each.queue,
                "reason": each.reason.value,
                "message": each.message,
            }
            for each in plan.lacking
        ],
        "findings": [finding_view(finding) for finding in checked.findings],
    }
    return present(view)


async def _in_use(call: Call) -> Any:
    found = await call.server.database.read(
        lambda conn: usage.read_usage(conn, call.namespace_id, call.query.get("definition_id"), VERSIONS_MAX)
    )
    return {
        "definitions": [_version(each) for each in found.versions],
        "handlers": [_handler(each) for each in found.handlers],
        "more": found.more,
    }


def _version(each: usage.VersionUse) -> dict[str, Any]:
    return present(
        {
            "definition_id": each.definition_id,
            "version": each.version,
            "draft": each.draft,
            "current": each.current,
            "retired": each.retired,
            "open": str(each.open),
            "since": None if each.since is None else to_rfc3339(each.since),
        }
    )


def _handler(each: usage.HandlerUse) -> dict[str, Any]:
    return present(
        {
            "handler": each.handler,
            "needed": each.needed,
            "tasks": str(each.tasks),
            "since": None if each.since is None else to_rfc3339(each.since),
            "workflows": str(each.workflows),
            "started_by": each.started_by,
            "workers": each.workers,
            "builds": sorted(each.builds),
        }
    )


_OF_DEFINITION = name_filter("definition_id", "Only those of this definition.")

ROUTES = (
    Route(
        "POST",
        "/v1/definitions/plan",
        "definitions:read",
        PublishPlan,
        _plan,
        "Say what publishing a document would mean, without storing it",
        body=PlanDefinition,
        idempotency="natural",
    ),
    Route(
        "GET",
        "/v1/versions",
        "definitions:read",
        VersionsInUse,
        _in_use,
        "Read which definition and handler versions are still in use",
        query=(_OF_DEFINITION,),
    ),
    Route(
        "POST",
        "/v1/drafts",
        "definitions:publish",
        Draft,
        _keep_draft,
        "Keep a definition as a draft, in a development namespace",
        body=KeepDraft,
        idempotency="natural",
    ),
    Route(
        "GET",
        "/v1/drafts",
        "definitions:read",
        Page[Draft],
        _list_drafts,
        "List drafts, by definition and newest first",
        query=(*PAGING, _OF_DEFINITION),
    ),
    Route(
        "GET",
        "/v1/drafts/{definition_id}/{digest}",
        "definitions:read",
        DraftDetail,
        _get_draft,
        "Read one draft with its document",
    ),
)
