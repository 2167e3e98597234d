CREATE TABLE IF NOT EXISTS attempts (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    attempt_no BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    session_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    worker VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    build VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    nonce VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    recovery VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    offered_at BIGINT NOT NULL,
    started_at BIGINT,
    lease_until BIGINT NOT NULL,
    limit_at BIGINT,
    marked_at BIGINT,
    closed_at BIGINT,
    outcome VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    charged SMALLINT NOT NULL,
    effect_possible SMALLINT NOT NULL,
    error MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    permits MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    asked_generation BIGINT,
    progress_timeout_ms BIGINT,
    progress_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_attempts_session (session_id),
    KEY ix_attempts_task (task_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS audit (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    at BIGINT NOT NULL,
    actor VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    on_behalf_of VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    action VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subject_kind VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subject_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    basis VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    evidence MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    before_digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    after_digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    details MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id),
    KEY ix_audit_namespace (namespace_id, at, id),
    KEY ix_audit_subject (subject_id, at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS blocked_builds (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    build VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    blocked SMALLINT NOT NULL,
    actor VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    changed_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_blocked_builds_namespace (namespace_id, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS bulk_items (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    bulk_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    number BIGINT NOT NULL,
    subject_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    step_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    business_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    expected BIGINT NOT NULL,
    state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    allowed SMALLINT NOT NULL,
    then_state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    why MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    evidence_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    made_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    settled_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_bulk_items_number (bulk_id, number),
    KEY ix_bulk_items_state (bulk_id, state, number)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS bulk_restarts (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    bulk_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    made_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (id),
    KEY ix_bulk_restarts_bulk (bulk_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS bulk_specs (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    filter MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    orders MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    reason MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS bulks (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    action VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    place CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    most BIGINT NOT NULL,
    items BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    truncated SMALLINT NOT NULL,
    applied BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    interval_us BIGINT NOT NULL,
    failures_max BIGINT,
    failures_percent BIGINT,
    stopped_by VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin,
    revision BIGINT NOT NULL,
    made_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    applied_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    applied_for VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    created_at BIGINT NOT NULL,
    planned_at BIGINT,
    started_at BIGINT,
    ended_at BIGINT,
    expires_at BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_bulks_due (due_at, id),
    KEY ix_bulks_namespace (namespace_id, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS concurrency_keys (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    class_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    held BIGINT NOT NULL,
    waiting BIGINT NOT NULL,
    admit_at BIGINT,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_concurrency_keys_admit (admit_at, id),
    KEY ix_concurrency_keys_queue (queue_id, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS credentials (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    token_hash VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    permissions MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    queues_submit MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    queues_consume MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    definitions_signal MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    priority_max SMALLINT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    created_by CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    PRIMARY KEY (id),
    KEY ix_credentials_namespace (namespace_id, id),
    KEY ix_credentials_token (token_hash)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS definition_documents (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    handlers MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    document MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    side_table MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    queues MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS definition_drafts (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    definition_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    made_at BIGINT NOT NULL,
    made_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    used_at BIGINT,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_definition_drafts_namespace (namespace_id, definition_id, made_at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS definition_pointers (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    definition_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    current_version BIGINT,
    latest_version BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_definition_pointers_namespace (namespace_id, definition_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS definitions (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    definition_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    published_at BIGINT NOT NULL,
    published_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    retired_at BIGINT,
    revision BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_definitions_namespace (namespace_id, definition_id, version)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS deliveries (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subscription_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    event_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    added_at BIGINT NOT NULL,
    visible_at BIGINT NOT NULL,
    deliveries BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_deliveries_added (subscription_id, added_at),
    KEY ix_deliveries_visible (subscription_id, visible_at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS events (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    workflow_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    aggregate_kind VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    aggregate_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    aggregate_revision BIGINT NOT NULL,
    type VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state_scope VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    step_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    signal_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    occurred_at BIGINT NOT NULL,
    payload MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    fanned_out SMALLINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_events_fanned_out (fanned_out, id),
    KEY ix_events_workflow (namespace_id, workflow_id, occurred_at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS evidence (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    attempt_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    kind VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    body MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    contradiction SMALLINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_evidence_task (task_id, at)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS fair_flows (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    weight BIGINT NOT NULL,
    finish BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_fair_flows_queue (queue_id, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS idempotency (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    operation VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    answer MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    subject_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_idempotency_expires (expires_at),
    KEY ix_idempotency_subject (subject_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS inbox (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    activation_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    source_revision BIGINT NOT NULL,
    state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_inbox_instance (instance_id, state),
    KEY ix_inbox_state (state, created_at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS instance_inputs (
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    input MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    labels MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    started_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    origin MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    idempotency_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    policy MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (instance_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS instance_outputs (
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    output MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (instance_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS instances (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    definition_key CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    definition_id VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    definition_version BIGINT NOT NULL,
    effect_root CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    paused SMALLINT NOT NULL,
    cancel_requested SMALLINT NOT NULL,
    stopping VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    control_version BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    pending_signals BIGINT NOT NULL,
    checkpoint MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    advance_due_at BIGINT,
    business_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    parameters_version BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    heir CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    PRIMARY KEY (id),
    KEY ix_instances_advance (advance_due_at, id),
    KEY ix_instances_business_key (namespace_id, business_key, id),
    KEY ix_instances_definition (namespace_id, definition_id, id),
    KEY ix_instances_namespace (namespace_id, id),
    KEY ix_instances_state (namespace_id, state, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS key_classes (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    running_max BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_key_classes_namespace (namespace_id, queue, name)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS key_places (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    key_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    admitted_at BIGINT,
    priority SMALLINT NOT NULL,
    virtual_start BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_key_places_order (key_id, admitted_at, priority DESC, virtual_start, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS limits (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
    running_max BIGINT,
    running BIGINT NOT NULL,
    backlog_max BIGINT,
    backlog BIGINT NOT NULL,
    rate BIGINT,
    rate_per_ms BIGINT NOT NULL,
    burst BIGINT NOT NULL,
    level BIGINT NOT NULL,
    level_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_limits_namespace (namespace_id, queue)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS namespaces (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    kind VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at BIGINT NOT NULL,
    settings MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS nodes (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    address VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS payloads (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    kind VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    body MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (id),
    KEY ix_payloads_instance (instance_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS purges (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    began_at BIGINT NOT NULL,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS queues (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    paused SMALLINT NOT NULL,
    wake_seq BIGINT NOT NULL,
    virtual_time BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_queues_namespace (namespace_id, name)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS readers (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    acknowledged BIGINT NOT NULL,
    expired BIGINT NOT NULL,
    dropped BIGINT NOT NULL,
    delivered BIGINT NOT NULL,
    redelivered BIGINT NOT NULL,
    pulled_at BIGINT,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS rosters (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subscriptions BIGINT NOT NULL,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS schedule_fires (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    schedule_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT NOT NULL,
    cause VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    planned_at BIGINT NOT NULL,
    start_at BIGINT,
    first_at BIGINT,
    merged BIGINT NOT NULL,
    target_kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    target_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    target_version BIGINT,
    reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    note VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    outcome VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    decided_at BIGINT,
    finished_at BIGINT,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_schedule_fires_planned (schedule_id, planned_at, id),
    KEY ix_schedule_fires_schedule (schedule_id, state, start_at),
    KEY ix_schedule_fires_target (target_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS schedule_inbox (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    schedule_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    fire_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    outcome VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_schedule_inbox_state (state, created_at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS schedule_records (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    schedule_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    count BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_schedule_records_schedule (schedule_id, at, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS schedule_versions (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    schedule_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT NOT NULL,
    effective_at BIGINT NOT NULL,
    live SMALLINT NOT NULL,
    spec MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    made_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    made_at BIGINT NOT NULL,
    priority_max SMALLINT,
    PRIMARY KEY (id),
    KEY ix_schedule_versions_schedule (schedule_id, version)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS schedules (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    version BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    accounted_to BIGINT NOT NULL,
    due_at BIGINT,
    unfinished BIGINT NOT NULL,
    waiting BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    kept_from BIGINT,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_schedules_due (due_at, id),
    KEY ix_schedules_namespace (namespace_id, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS sessions (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    credential_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    node_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    nonce VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    worker VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    build VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    handlers MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    queues MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    connected_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    closed_at BIGINT,
    stuck BIGINT NOT NULL,
    refused MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id),
    KEY ix_sessions_namespace (namespace_id, id),
    KEY ix_sessions_open (closed_at, seen_at)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS signal_bodies (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    body MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    actor VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    on_behalf_of VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    accepted_at BIGINT NOT NULL,
    parameters_version BIGINT NOT NULL,
    evidence MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS signals (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    `signal` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    match_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    step_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    activation_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    leftover_of VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    revision BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL,
    expires_at BIGINT,
    disposition VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    consumed_step VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    consumed_wait_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_signals_expires (state, expires_at, id),
    KEY ix_signals_instance (instance_id, state)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS steps (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    step_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    step_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    activation_no BIGINT NOT NULL,
    state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    live SMALLINT NOT NULL,
    revision BIGINT NOT NULL,
    reason VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    review_class VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    exit_taken VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    task_revision BIGINT NOT NULL,
    round BIGINT NOT NULL,
    attempts_spent BIGINT NOT NULL,
    effect_possible SMALLINT NOT NULL,
    `signal` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
    match_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    opened_at BIGINT NOT NULL,
    deadline_at BIGINT,
    due_at BIGINT,
    arms MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    result_ref VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin,
    failure_ref VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin,
    closed_at BIGINT,
    last BIGINT NOT NULL,
    granted VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    PRIMARY KEY (id),
    KEY ix_steps_due (due_at, id),
    KEY ix_steps_instance (instance_id, live),
    KEY ix_steps_state (namespace_id, state, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS subscriptions (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    filter MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    when_full VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    backlog_max BIGINT NOT NULL,
    visibility_ms BIGINT NOT NULL,
    retention_ms BIGINT NOT NULL,
    added BIGINT NOT NULL,
    dropped BIGINT NOT NULL,
    dropped_first_at BIGINT,
    dropped_last_at BIGINT,
    made_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (id),
    KEY ix_subscriptions_namespace (namespace_id, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS task_progress (
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    attempt_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    body MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (task_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS task_results (
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    result MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    error MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    at BIGINT NOT NULL,
    PRIMARY KEY (task_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS task_specs (
    task_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    parameters MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    digest VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    policy MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    effect_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    labels MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    parameters_version BIGINT NOT NULL,
    submitted_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    retry_of CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    linked_to CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    idempotency_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    trace MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    PRIMARY KEY (task_id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

CREATE TABLE IF NOT EXISTS tasks (
    id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    namespace_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    handler VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    handler_version BIGINT NOT NULL,
    state VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    blocked SMALLINT NOT NULL,
    gate SMALLINT NOT NULL,
    priority SMALLINT NOT NULL,
    virtual_start BIGINT NOT NULL,
    due_at BIGINT,
    deadline_at BIGINT,
    latest_start_at BIGINT,
    total_deadline_at BIGINT,
    attempt_timeout_ms BIGINT NOT NULL,
    attempts_used BIGINT NOT NULL,
    attempts_max BIGINT NOT NULL,
    uncharged BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    recovery VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    can_verify SMALLINT NOT NULL,
    verify_deadline_at BIGINT,
    attempt_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    lease_until BIGINT,
    cancel_requested SMALLINT NOT NULL,
    effect_possible SMALLINT NOT NULL,
    late_success SMALLINT NOT NULL,
    detached SMALLINT NOT NULL,
    review_class VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin,
    error_code VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin,
    instance_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    activation_id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    step_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
    round BIGINT NOT NULL,
    business_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    concurrency_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    fairness_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    counted SMALLINT NOT NULL,
    probe_of CHAR(32) CHARACTER SET ascii COLLATE ascii_bin,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    settled_at BIGINT,
    lock_seq BIGINT NOT NULL DEFAULT 0,
    last BIGINT NOT NULL,
    PRIMARY KEY (id),
    KEY ix_tasks_business_key (namespace_id, business_key, id),
    KEY ix_tasks_deadline (deadline_at, id),
    KEY ix_tasks_due (due_at, id),
    KEY ix_tasks_instance (instance_id),
    KEY ix_tasks_lease (lease_until, id),
    KEY ix_tasks_namespace (namespace_id, id),
    KEY ix_tasks_ready (queue_id, state, blocked, handler, handler_version, priority DESC, virtual_start, id)
)ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE utf8mb4_bin
;

