"""Lists and counts of workflows."""

from __future__ import annotations

from typing import Any, get_args

from orbit_sdk.protocol.common import Count, Page
from orbit_sdk.protocol.workflows import Workflow, WorkflowState
from orbit_server.api.call import Call
from orbit_server.api.counts import count_view
from orbit_server.api.query import (
    PAGING,
    flag,
    group_filter,
    id_filter,
    instant,
    labels_filter,
    name_filter,
    one_of,
    text_filter,
    whole,
)
from orbit_server.api.routes import Route
from orbit_server.weave.instances.lists import GROUPS, InstanceFilter, count_instances, page_instances
from orbit_server.weave.state.views import summary_of


def _wanted(call: Call) -> InstanceFilter:
    return InstanceFilter(
        definition_id=call.query.get("definition_id"),
        definition_version=call.query.get("version"),
        state=call.query.get("state"),
        business_key=call.query.get("business_key"),
        paused=call.query.get("paused"),
        step=call.query.get("step"),
        reason=call.query.get("reason"),
        error_code=call.query.get("error_code"),
        schedule_id=call.query.get("schedule_id"),
        labels=call.query.get("labels", {}),
        started_from=call.query.get("started_from"),
        started_to=call.query.get("started_to"),
    )


async def _list_workflows(call: Call) -> Any:
    paging = call.paging("workflows", (str,))
    wanted = _wanted(call)
    before: Any = paging.after[0] if paging.after else None
    found = await call.server.database.read(
        lambda conn: page_instances(conn, call.namespace_id, wanted, before, paging.take)
    )
    reached = None if found.reached is None else (found.reached,)
    return paging.page(found.rows, summary_of, lambda row: (row.id,), reached)


async def _count_workflows(call: Call) -> Any:
    wanted, group_by = _wanted(call), call.query.get("group_by")
    tally = await call.server.database.read(
        lambda conn: count_instances(conn, call.namespace_id, wanted, group_by)
    )
    return count_view(tally)


_FILTERS = (
    name_filter("definition_id", "Only workflows of this definition."),
    whole("version", 1, 2**31 - 1, "Only workflows of this version."),
    one_of("state", get_args(WorkflowState), "Only workflows in this state."),
    text_filter("business_key", "Only workflows with this business key."),
    flag("paused", "Only paused workflows, or only those that are not."),
    name_filter("step", "Only workflows that stand at this step now."),
    text_filter("reason", "Only workflows that stand at a step for this reason."),
    text_filter("error_code", "Only workflows that failed with this error code."),
    id_filter("schedule_id", "Only workflows that this schedule started."),
    labels_filter("Only workflows with all of these labels, as name=value, apart by commas."),
    instant("started_from", "Only workflows started at this instant or later."),
    instant("started_to", "Only workflows started before this instant."),
)

ROUTES = (
    Route(
        "GET",
        "/v1/workflows",
        "workflows:read",
        Page[Workflow],
        _list_workflows,
        "List workflows, newest first",
        query=(*PAGING, *_FILTERS),
    ),
    Route(
        "GET",
        "/v1/workflows/count",
        "workflows:read",
        Count,
        _count_workflows,
        "Count workflows, in groups if asked to",
        query=(*_FILTERS, group_filter(GROUPS)),
    ),
)
