"""Every table, declared once for both dialects.

What changes often stands in narrow, indexed tables; what is written once (inputs, parameters, bodies,
results) stands apart under the same id and is not read to decide. There are no foreign keys, no triggers, no
generated numbers and no unique index beside the primary key: a second row of one meaning is impossible
because its id is derived from that meaning.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, MetaData, Table, text

from orbit_server.storage.columns import body, flag, ident, instant, label, lock_seq, number, small, word

metadata = MetaData()


# Tables of large texts. On SQLite all others are kept in the order of their ids, without an index beside it.
_LARGE = frozenset(
    {
        "audit",
        "bulk_items",
        "bulk_specs",
        "definition_documents",
        "events",
        "evidence",
        "idempotency",
        "instance_inputs",
        "instance_outputs",
        "payloads",
        "schedule_versions",
        "signal_bodies",
        "task_progress",
        "task_results",
        "task_specs",
    }
)


def _table(name: str, *columns: Column[str] | Column[int] | Index) -> Table:
    return Table(
        name,
        metadata,
        *columns,
        sqlite_strict=True,
        sqlite_with_rowid=name in _LARGE,
        mysql_engine="InnoDB",
        mysql_default_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        mariadb_default_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
    )


# --- who may do what ---------------------------------------------------------------------------------------

namespaces = _table(
    "namespaces",
    ident("id", primary=True),
    label("name", 128),
    word("kind", 24),
    instant("created_at"),
    body("settings"),
)

credentials = _table(
    "credentials",
    ident("id", primary=True),
    ident("namespace_id"),
    label("name", 128),
    word("token_hash", 128),
    body("permissions"),
    body("queues_submit"),
    body("queues_consume"),
    body("definitions_signal"),
    small("priority_max", null=True),
    instant("created_at"),
    instant("expires_at", null=True),
    instant("revoked_at", null=True),
    ident("created_by", null=True),
    Index("ix_credentials_namespace", "namespace_id", "id"),
    Index("ix_credentials_token", "token_hash"),
)

audit = _table(
    "audit",
    ident("id", primary=True),
    ident("namespace_id"),
    instant("at"),
    label("actor"),
    label("on_behalf_of", null=True),
    word("action", 64),
    word("subject_kind", 32),
    ident("subject_id"),
    body("reason", null=True),
    word("basis", 24, null=True),
    body("evidence", null=True),
    word("before_digest", 64, null=True),
    word("after_digest", 64, null=True),
    body("details", null=True),
    Index("ix_audit_namespace", "namespace_id", "at", "id"),
    Index("ix_audit_subject", "subject_id", "at", "id"),
)

idempotency = _table(
    "idempotency",
    ident("id", primary=True),
    ident("namespace_id"),
    word("operation", 64),
    word("digest", 64),
    body("answer", null=True),
    ident("subject_id", null=True),
    instant("created_at"),
    instant("expires_at", null=True),
    Index("ix_idempotency_expires", "expires_at"),
    Index("ix_idempotency_subject", "subject_id"),
)

# --- definitions -------------------------------------------------------------------------------------------

definitions = _table(
    "definitions",
    ident("id", primary=True),
    ident("namespace_id"),
    word("definition_id"),
    number("version"),
    word("digest", 64),
    instant("published_at"),
    label("published_by"),
    instant("retired_at", null=True),
    number("revision"),
    Index("ix_definitions_namespace", "namespace_id", "definition_id", "version"),
)

definition_documents = _table(
    "definition_documents",
    ident("id", primary=True),
    body("handlers"),
    body("document"),
    body("side_table", null=True),
    body("queues"),
)

definition_pointers = _table(
    "definition_pointers",
    ident("id", primary=True),
    ident("namespace_id"),
    word("definition_id"),
    number("current_version", null=True),
    number("latest_version"),
    number("revision"),
    lock_seq(),
    instant("last"),
    Index("ix_definition_pointers_namespace", "namespace_id", "definition_id"),
)

definition_drafts = _table(
    "definition_drafts",
    ident("id", primary=True),
    ident("namespace_id"),
    word("definition_id"),
    number("version"),
    word("digest", 64),
    instant("made_at"),
    label("made_by"),
    instant("used_at", null=True),
    lock_seq(),
    instant("last"),
    Index("ix_definition_drafts_namespace", "namespace_id", "definition_id", "made_at", "id"),
)

# --- workflow instances ------------------------------------------------------------------------------------

instances = _table(
    "instances",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("definition_key"),
    word("definition_id"),
    number("definition_version"),
    ident("effect_root"),
    word("state", 24),
    flag("paused"),
    flag("cancel_requested"),
    word("stopping", 64, null=True),
    number("control_version"),
    number("revision"),
    number("pending_signals"),
    body("checkpoint", null=True),
    instant("advance_due_at", null=True),
    label("business_key", null=True),
    number("parameters_version"),
    instant("started_at"),
    instant("ended_at", null=True),
    lock_seq(),
    instant("last"),
    ident("heir", null=True),
    Index("ix_instances_namespace", "namespace_id", "id"),
    Index("ix_instances_state", "namespace_id", "state", "id"),
    Index("ix_instances_definition", "namespace_id", "definition_id", "id"),
    Index("ix_instances_business_key", "namespace_id", "business_key", "id"),
    Index("ix_instances_advance", "advance_due_at", "id"),
)

instance_inputs = _table(
    "instance_inputs",
    ident("instance_id", primary=True),
    body("input"),
    word("digest", 64),
    body("labels", null=True),
    label("started_by"),
    body("origin", null=True),
    ident("idempotency_id", null=True),
    body("policy", null=True),
)

instance_outputs = _table(
    "instance_outputs",
    ident("instance_id", primary=True),
    body("output", null=True),
    body("error", null=True),
)

steps = _table(
    "steps",
    ident("id", primary=True),
    ident("instance_id"),
    ident("namespace_id"),
    ident("step_id"),
    word("step_key", 64),
    number("activation_no"),
    word("state", 24),
    flag("live"),
    number("revision"),
    word("reason", 64, null=True),
    word("review_class", 24, null=True),
    word("exit_taken", 64, null=True),
    ident("task_id", null=True),
    number("task_revision"),
    number("round"),
    number("attempts_spent"),
    flag("effect_possible"),
    word("signal", null=True),
    label("match_key", null=True),
    instant("opened_at"),
    instant("deadline_at", null=True),
    instant("due_at", null=True),
    body("arms", null=True),
    word("result_ref", 40, null=True),
    word("failure_ref", 40, null=True),
    instant("closed_at", null=True),
    instant("last"),
    word("granted", 64, null=True),
    Index("ix_steps_instance", "instance_id", "live"),
    Index("ix_steps_due", "due_at", "id"),
    Index("ix_steps_state", "namespace_id", "state", "id"),
)

payloads = _table(
    "payloads",
    ident("id", primary=True),
    ident("instance_id"),
    word("kind", 24),
    body("body"),
    word("digest", 64),
    Index("ix_payloads_instance", "instance_id"),
)

signals = _table(
    "signals",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("instance_id"),
    word("signal"),
    label("match_key", null=True),
    word("step_key", 64, null=True),
    ident("activation_id", null=True),
    word("state", 24),
    word("leftover_of", 64, null=True),
    number("revision"),
    instant("accepted_at"),
    instant("expires_at", null=True),
    word("disposition", 32, null=True),
    word("consumed_step", 64, null=True),
    ident("consumed_wait_id", null=True),
    instant("last"),
    Index("ix_signals_instance", "instance_id", "state"),
    Index("ix_signals_expires", "state", "expires_at", "id"),
)

signal_bodies = _table(
    "signal_bodies",
    ident("id", primary=True),
    body("body"),
    word("digest", 64),
    label("actor"),
    label("on_behalf_of", null=True),
    instant("accepted_at"),
    number("parameters_version"),
    body("evidence", null=True),
)

# --- tasks -------------------------------------------------------------------------------------------------

tasks = _table(
    "tasks",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("queue_id"),
    word("queue"),
    word("handler"),
    number("handler_version"),
    word("state", 24),
    small("blocked"),
    small("gate"),
    small("priority"),
    number("virtual_start"),
    instant("due_at", null=True),
    instant("deadline_at", null=True),
    instant("latest_start_at", null=True),
    instant("total_deadline_at", null=True),
    number("attempt_timeout_ms"),
    number("attempts_used"),
    number("attempts_max"),
    number("uncharged"),
    number("generation"),
    word("recovery", 24),
    flag("can_verify"),
    instant("verify_deadline_at", null=True),
    ident("attempt_id", null=True),
    instant("lease_until", null=True),
    flag("cancel_requested"),
    flag("effect_possible"),
    flag("late_success"),
    flag("detached"),
    word("review_class", 24, null=True),
    word("error_code", null=True),
    ident("instance_id", null=True),
    ident("activation_id", null=True),
    word("step_key", 64, null=True),
    number("round"),
    label("business_key", null=True),
    label("concurrency_key", null=True),
    label("fairness_key", null=True),
    small("counted"),
    ident("probe_of", null=True),
    number("revision"),
    instant("created_at"),
    instant("settled_at", null=True),
    lock_seq(),
    instant("last"),
    Index(
        "ix_tasks_ready",
        "queue_id",
        "state",
        "blocked",
        "handler",
        "handler_version",
        text("priority DESC"),
        "virtual_start",
        "id",
    ),
    Index("ix_tasks_due", "due_at", "id"),
    Index("ix_tasks_deadline", "deadline_at", "id"),
    Index("ix_tasks_lease", "lease_until", "id"),
    Index("ix_tasks_namespace", "namespace_id", "id"),
    Index("ix_tasks_business_key", "namespace_id", "business_key", "id"),
    Index("ix_tasks_instance", "instance_id"),
)

task_specs = _table(
    "task_specs",
    ident("task_id", primary=True),
    body("parameters"),
    word("digest", 64),
    body("policy", null=True),
    word("effect_key", 64),
    body("labels", null=True),
    number("parameters_version"),
    label("submitted_by", null=True),
    ident("retry_of", null=True),
    ident("linked_to", null=True),
    ident("idempotency_id", null=True),
    body("trace", null=True),
)

task_progress = _table(
    "task_progress",
    ident("task_id", primary=True),
    ident("attempt_id"),
    body("body"),
    instant("at"),
)

task_results = _table(
    "task_results",
    ident("task_id", primary=True),
    body("result", null=True),
    body("error", null=True),
    word("digest", 64, null=True),
    instant("at"),
)

attempts = _table(
    "attempts",
    ident("id", primary=True),
    ident("task_id"),
    ident("namespace_id"),
    number("attempt_no"),
    number("generation"),
    word("kind", 16),
    word("state", 16),
    ident("session_id", null=True),
    label("worker", null=True),
    label("build", null=True),
    word("nonce", 64, null=True),
    word("recovery", 24),
    instant("offered_at"),
    instant("started_at", null=True),
    instant("lease_until"),
    instant("limit_at", null=True),
    instant("marked_at", null=True),
    instant("closed_at", null=True),
    word("outcome", 32, null=True),
    flag("charged"),
    flag("effect_possible"),
    body("error", null=True),
    body("permits", null=True),
    number("asked_generation", null=True),
    number("progress_timeout_ms", null=True),
    instant("progress_at", null=True),
    Index("ix_attempts_task", "task_id"),
    Index("ix_attempts_session", "session_id"),
)

evidence = _table(
    "evidence",
    ident("id", primary=True),
    ident("task_id"),
    ident("attempt_id", null=True),
    ident("namespace_id"),
    word("kind", 40),
    body("body", null=True),
    word("digest", 64, null=True),
    flag("contradiction"),
    instant("at"),
    Index("ix_evidence_task", "task_id", "at"),
)

inbox = _table(
    "inbox",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("instance_id"),
    ident("task_id"),
    ident("activation_id"),
    number("source_revision"),
    word("state", 16),
    instant("created_at"),
    Index("ix_inbox_state", "state", "created_at", "id"),
    Index("ix_inbox_instance", "instance_id", "state"),
)

# --- what happened -----------------------------------------------------------------------------------------

events = _table(
    "events",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("workflow_id", null=True),
    ident("task_id", null=True),
    word("aggregate_kind", 24),
    ident("aggregate_id"),
    number("aggregate_revision"),
    word("type", 64),
    word("state_scope", 24, null=True),
    word("state", 24, null=True),
    word("step_key", 64, null=True),
    ident("signal_id", null=True),
    instant("occurred_at"),
    body("payload"),
    flag("fanned_out"),
    Index("ix_events_workflow", "namespace_id", "workflow_id", "occurred_at", "id"),
    Index("ix_events_fanned_out", "fanned_out", "id"),
)

# --- workers and queues ------------------------------------------------------------------------------------

sessions = _table(
    "sessions",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("credential_id"),
    ident("node_id"),
    word("nonce", 64),
    label("worker"),
    label("build", null=True),
    body("handlers"),
    body("queues"),
    instant("connected_at"),
    instant("seen_at"),
    instant("closed_at", null=True),
    number("stuck"),
    body("refused", null=True),
    Index("ix_sessions_namespace", "namespace_id", "id"),
    Index("ix_sessions_open", "closed_at", "seen_at"),
)

queues = _table(
    "queues",
    ident("id", primary=True),
    ident("namespace_id"),
    word("name"),
    flag("paused"),
    number("wake_seq"),
    number("virtual_time"),
    number("revision"),
    lock_seq(),
    instant("last"),
    Index("ix_queues_namespace", "namespace_id", "name"),
)

# A row stands here only where a limit was set, or where a task with a key is not settled yet.

limits = _table(
    "limits",
    ident("id", primary=True),
    ident("namespace_id"),
    word("queue", null=True),
    number("running_max", null=True),
    number("running"),
    number("backlog_max", null=True),
    number("backlog"),
    number("rate", null=True),
    number("rate_per_ms"),
    number("burst"),
    number("level"),
    instant("level_at"),
    instant("changed_at"),
    number("revision"),
    lock_seq(),
    instant("last"),
    Index("ix_limits_namespace", "namespace_id", "queue"),
)

key_classes = _table(
    "key_classes",
    ident("id", primary=True),
    ident("namespace_id"),
    word("queue"),
    label("name", 128),
    number("running_max"),
    number("revision"),
    lock_seq(),
    instant("last"),
    Index("ix_key_classes_namespace", "namespace_id", "queue", "name"),
)

concurrency_keys = _table(
    "concurrency_keys",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("queue_id"),
    ident("class_id"),
    label("name"),
    number("held"),
    number("waiting"),
    instant("admit_at", null=True),
    lock_seq(),
    instant("last"),
    Index("ix_concurrency_keys_admit", "admit_at", "id"),
    Index("ix_concurrency_keys_queue", "queue_id", "id"),
)

key_places = _table(
    "key_places",
    ident("id", primary=True),
    ident("key_id"),
    instant("admitted_at", null=True),
    small("priority"),
    number("virtual_start"),
    Index("ix_key_places_order", "key_id", "admitted_at", text("priority DESC"), "virtual_start", "id"),
)

fair_flows = _table(
    "fair_flows",
    ident("id", primary=True),
    ident("namespace_id"),
    ident("queue_id"),
    label("name"),
    number("weight"),
    number("finish"),
    lock_seq(),
    instant("last"),
    Index("ix_fair_flows_queue", "queue_id", "id"),
)

blocked_builds = _table(
    "blocked_builds",
    ident("id", primary=True),
    ident("namespace_id"),
    label("build"),
    flag("blocked"),
    label("actor"),
    body("reason"),
    instant("changed_at"),
    number("revision"),
    lock_seq(),
    instant("last"),
    Index("ix_blocked_builds_namespace", "namespace_id", "id"),
)

nodes = _table(
    "nodes",
    ident("id", primary=True),
    instant("started_at"),
    instant("seen_at"),
    label("address", null=True),
)

# --- schedules ---------------------------------------------------------------------------------------------

schedules = _table(
    "schedules",
    ident("id", primary=True),
    ident("namespace_id"),
    label("name", 128),
    word("state", 16),
    number("version"),
    number("revision"),
    instant("accounted_to"),
    instant("due_at", null=True),
    number("unfinished"),
    number("waiting"),
    instant("created_at"),
    instant("kept_from", null=True),
    lock_seq(),
    instant("last"),
    Index("ix_schedules_due", "due_at", "id"),
    Index("ix_schedules_namespace", "namespace_id", "id"),
)

schedule_versions = _table(
    "schedule_versions",
    ident("id", primary=True),
    ident("schedule_id"),
    number("version"),
    instant("effective_at"),
    flag("live"),
    body("spec"),
    label("made_by"),
    instant("made_at"),
    small("priority_max", null=True),
    Index("ix_schedule_versions_schedule", "schedule_id", "version"),
)

schedule_fires = _table(
    "schedule_fires",
    ident("id", primary=True),
    ident("schedule_id"),
    ident("namespace_id"),
    number("version"),
    word("cause", 16),
    word("state", 16),
    instant("planned_at"),
    instant("start_at", null=True),
    instant("first_at", null=True),
    number("merged"),
    word("target_kind", 16),
    ident("target_id", null=True),
    number("target_version", null=True),
    word("reason", 32, null=True),
    label("note", 500, null=True),
    word("outcome", 24, null=True),
    instant("decided_at", null=True),
    instant("finished_at", null=True),
    instant("last"),
    Index("ix_schedule_fires_schedule", "schedule_id", "state", "start_at"),
    Index("ix_schedule_fires_planned", "schedule_id", "planned_at", "id"),
    Index("ix_schedule_fires_target", "target_id"),
)

schedule_records = _table(
    "schedule_records",
    ident("id", primary=True),
    ident("schedule_id"),
    ident("namespace_id"),
    instant("at"),
    number("version"),
    word("reason", 32),
    instant("first_at"),
    instant("last_at"),
    number("count"),
    Index("ix_schedule_records_schedule", "schedule_id", "at", "id"),
)

schedule_inbox = _table(
    "schedule_inbox",
    ident("id", primary=True),
    ident("schedule_id"),
    ident("fire_id"),
    word("state", 16),
    word("outcome", 24),
    instant("created_at"),
    Index("ix_schedule_inbox_state", "state", "created_at", "id"),
)

# --- retention ---------------------------------------------------------------------------------------------

# A workflow whose own row is gone and whose other rows are going: it is finished from wherever it was left.

purges = _table(
    "purges",
    ident("id", primary=True),
    ident("namespace_id"),
    instant("began_at"),
)

# --- subscriptions -----------------------------------------------------------------------------------------

rosters = _table(
    "rosters",
    ident("id", primary=True),
    number("subscriptions"),
    lock_seq(),
)

subscriptions = _table(
    "subscriptions",
    ident("id", primary=True),
    ident("namespace_id"),
    label("name", 128),
    body("filter"),
    word("when_full", 16),
    number("backlog_max"),
    number("visibility_ms"),
    number("retention_ms"),
    number("added"),
    number("dropped"),
    instant("dropped_first_at", null=True),
    instant("dropped_last_at", null=True),
    label("made_by"),
    instant("created_at"),
    instant("ended_at", null=True),
    Index("ix_subscriptions_namespace", "namespace_id", "id"),
)

readers = _table(
    "readers",
    ident("id", primary=True),
    number("acknowledged"),
    number("expired"),
    number("dropped"),
    number("delivered"),
    number("redelivered"),
    instant("pulled_at", null=True),
    lock_seq(),
)

deliveries = _table(
    "deliveries",
    ident("id", primary=True),
    ident("subscription_id"),
    ident("event_id"),
    instant("added_at"),
    instant("visible_at"),
    number("deliveries"),
    Index("ix_deliveries_visible", "subscription_id", "visible_at", "id"),
    Index("ix_deliveries_added", "subscription_id", "added_at"),
)

# --- bulk --------------------------------------------------------------------------------------------------

bulks = _table(
    "bulks",
    ident("id", primary=True),
    ident("namespace_id"),
    word("action", 32),
    word("state", 16),
    ident("place", null=True),
    number("most"),
    number("items"),
    number("refused"),
    flag("truncated"),
    number("applied"),
    number("skipped"),
    number("failed"),
    number("interval_us"),
    number("failures_max", null=True),
    number("failures_percent", null=True),
    word("stopped_by", 16, null=True),
    number("revision"),
    label("made_by"),
    label("applied_by", null=True),
    label("applied_for", null=True),
    instant("created_at"),
    instant("planned_at", null=True),
    instant("started_at", null=True),
    instant("ended_at", null=True),
    instant("expires_at"),
    instant("due_at"),
    lock_seq(),
    instant("last"),
    Index("ix_bulks_due", "due_at", "id"),
    Index("ix_bulks_namespace", "namespace_id", "id"),
)

bulk_specs = _table(
    "bulk_specs",
    ident("id", primary=True),
    body("filter"),
    body("orders"),
    body("reason"),
)

bulk_items = _table(
    "bulk_items",
    ident("id", primary=True),
    ident("bulk_id"),
    number("number"),
    ident("subject_id"),
    word("step_key", 64, null=True),
    label("business_key", null=True),
    number("expected"),
    word("state", 24),
    flag("allowed"),
    word("then_state", 24, null=True),
    word("code", 32, null=True),
    body("why", null=True),
    ident("evidence_id", null=True),
    ident("made_id", null=True),
    instant("settled_at", null=True),
    Index("ix_bulk_items_number", "bulk_id", "number"),
    Index("ix_bulk_items_state", "bulk_id", "state", "number"),
)

bulk_restarts = _table(
    "bulk_restarts",
    ident("id", primary=True),
    ident("bulk_id"),
    ident("made_id"),
    Index("ix_bulk_restarts_bulk", "bulk_id"),
)
