"""The rows of the route table for tasks."""

from __future__ import annotations

from orbit_sdk.protocol.common import Count, Page
from orbit_sdk.protocol.tasks import (
    Attempt,
    CancelTask,
    ResolveTask,
    SubmitBatch,
    SubmitItem,
    SubmitTask,
    Task,
)
from orbit_sdk.protocol.tasks import TaskDetail as Detail
from orbit_sdk.protocol.why import Why
from orbit_sdk.protocol.workflows import BatchResult
from orbit_server.api import tasks
from orbit_server.api.query import (
    PAGING,
    group_filter,
    handler_filter,
    id_filter,
    instant,
    labels_filter,
    name_filter,
    one_of,
    queue_filter,
    text_filter,
    whole,
)
from orbit_server.api.routes import Route
from orbit_server.api.task_views import TASK_STATES, count, get_task, list_attempts, list_tasks
from orbit_server.api.why import why
from orbit_server.pulse.tasks.lifecycle import ReviewClass
from orbit_server.pulse.tasks.lists import GROUPS

_FILTERS = (
    one_of("state", TASK_STATES, "Only tasks in this state."),
    queue_filter("queue", "Only tasks of this queue."),
    handler_filter("handler", "Only tasks of this handler, with or without its version."),
    text_filter("business_key", "Only tasks with this business key."),
    id_filter("workflow_id", "Only tasks of this workflow."),
    name_filter("step", "Only tasks of this step."),
    name_filter("definition_id", "Only tasks of workflows of this definition."),
    whole("version", 1, 2**31 - 1, "Only tasks of this version of the definition (with `definition_id`)."),
    id_filter("schedule_id", "Only tasks that this schedule started."),
    text_filter("error_code", "Only tasks that ended with this error code."),
    one_of("review_class", (each.value for each in ReviewClass), "Only tasks in a review of this class."),
    labels_filter("Only tasks with all of these labels, as name=value, apart by commas."),
    instant("created_from", "Only tasks accepted at this instant or later."),
    instant("created_to", "Only tasks accepted before this instant."),
)

ROUTES = (
    Route(
        "POST",
        "/v1/tasks",
        "tasks:submit",
        Task,
        tasks.submit,
        "Submit a task",
        body=SubmitTask,
        idempotency="required",
    ),
    Route(
        "POST",
        "/v1/tasks/batch",
        "tasks:submit",
        BatchResult,
        tasks.submit_batch,
        "Submit many tasks, each with a result of its own",
        body=SubmitBatch,
        item=SubmitItem,
    ),
    Route(
        "GET",
        "/v1/tasks",
        "tasks:read",
        Page[Task],
        list_tasks,
        "List tasks, newest first",
        query=(*PAGING, *_FILTERS),
    ),
    Route(
        "GET",
        "/v1/tasks/count",
        "tasks:read",
        Count,
        count,
        "Count tasks, in groups if asked to",
        query=(*_FILTERS, group_filter(GROUPS)),
    ),
    Route("GET", "/v1/tasks/{task_id}", "tasks:read", Detail, get_task, "Read one task with what it left"),
    Route(
        "GET",
        "/v1/tasks/{task_id}/attempts",
        "tasks:read",
        Page[Attempt],
        list_attempts,
        "List the attempts of a task, newest first",
        query=PAGING,
    ),
    Route(
        "GET",
        "/v1/tasks/{task_id}/why",
        "tasks:read",
        Why,
        why,
        "Say what a task waits for, and what happens next by itself",
    ),
    Route(
        "POST",
        "/v1/tasks/{task_id}/cancel",
        "tasks:cancel",
        Task,
        tasks.cancel,
        "Cancel a standalone task",
        body=CancelTask,
        idempotency="required",
    ),
    Route(
        "POST",
        "/v1/tasks/{task_id}/review",
        "tasks:review",
        Task,
        tasks.resolve,
        "Decide on a standalone task in review",
        body=ResolveTask,
        idempotency="required",
    ),
)
