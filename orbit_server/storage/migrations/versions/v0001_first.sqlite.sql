CREATE TABLE IF NOT EXISTS attempts (
    id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    attempt_no INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    session_id TEXT,
    worker TEXT,
    build TEXT,
    nonce TEXT,
    recovery TEXT NOT NULL,
    offered_at INTEGER NOT NULL,
    started_at INTEGER,
    lease_until INTEGER NOT NULL,
    limit_at INTEGER,
    marked_at INTEGER,
    closed_at INTEGER,
    outcome TEXT,
    charged INTEGER NOT NULL,
    effect_possible INTEGER NOT NULL,
    error TEXT,
    permits TEXT,
    asked_generation INTEGER,
    progress_timeout_ms INTEGER,
    progress_at INTEGER,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_attempts_session ON attempts (session_id)
;

CREATE INDEX IF NOT EXISTS ix_attempts_task ON attempts (task_id)
;

CREATE TABLE IF NOT EXISTS audit (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    on_behalf_of TEXT,
    action TEXT NOT NULL,
    subject_kind TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    reason TEXT,
    basis TEXT,
    evidence TEXT,
    before_digest TEXT,
    after_digest TEXT,
    details TEXT,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_audit_namespace ON audit (namespace_id, at, id)
;

CREATE INDEX IF NOT EXISTS ix_audit_subject ON audit (subject_id, at, id)
;

CREATE TABLE IF NOT EXISTS blocked_builds (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    build TEXT NOT NULL,
    blocked INTEGER NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_blocked_builds_namespace ON blocked_builds (namespace_id, id)
;

CREATE TABLE IF NOT EXISTS bulk_items (
    id TEXT NOT NULL,
    bulk_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    subject_id TEXT NOT NULL,
    step_key TEXT,
    business_key TEXT,
    expected INTEGER NOT NULL,
    state TEXT NOT NULL,
    allowed INTEGER NOT NULL,
    then_state TEXT,
    code TEXT,
    why TEXT,
    evidence_id TEXT,
    made_id TEXT,
    settled_at INTEGER,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_bulk_items_number ON bulk_items (bulk_id, number)
;

CREATE INDEX IF NOT EXISTS ix_bulk_items_state ON bulk_items (bulk_id, state, number)
;

CREATE TABLE IF NOT EXISTS bulk_restarts (
    id TEXT NOT NULL,
    bulk_id TEXT NOT NULL,
    made_id TEXT NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_bulk_restarts_bulk ON bulk_restarts (bulk_id)
;

CREATE TABLE IF NOT EXISTS bulk_specs (
    id TEXT NOT NULL,
    filter TEXT NOT NULL,
    orders TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS bulks (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    action TEXT NOT NULL,
    state TEXT NOT NULL,
    place TEXT,
    most INTEGER NOT NULL,
    items INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    truncated INTEGER NOT NULL,
    applied INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    interval_us INTEGER NOT NULL,
    failures_max INTEGER,
    failures_percent INTEGER,
    stopped_by TEXT,
    revision INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    applied_by TEXT,
    applied_for TEXT,
    created_at INTEGER NOT NULL,
    planned_at INTEGER,
    started_at INTEGER,
    ended_at INTEGER,
    expires_at INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_bulks_due ON bulks (due_at, id)
;

CREATE INDEX IF NOT EXISTS ix_bulks_namespace ON bulks (namespace_id, id)
;

CREATE TABLE IF NOT EXISTS concurrency_keys (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    queue_id TEXT NOT NULL,
    class_id TEXT NOT NULL,
    name TEXT NOT NULL,
    held INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    admit_at INTEGER,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_concurrency_keys_admit ON concurrency_keys (admit_at, id)
;

CREATE INDEX IF NOT EXISTS ix_concurrency_keys_queue ON concurrency_keys (queue_id, id)
;

CREATE TABLE IF NOT EXISTS credentials (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    permissions TEXT NOT NULL,
    queues_submit TEXT NOT NULL,
    queues_consume TEXT NOT NULL,
    definitions_signal TEXT NOT NULL,
    priority_max INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    created_by TEXT,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_credentials_namespace ON credentials (namespace_id, id)
;

CREATE INDEX IF NOT EXISTS ix_credentials_token ON credentials (token_hash)
;

CREATE TABLE IF NOT EXISTS definition_documents (
    id TEXT NOT NULL,
    handlers TEXT NOT NULL,
    document TEXT NOT NULL,
    side_table TEXT,
    queues TEXT NOT NULL,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS definition_drafts (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    definition_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    used_at INTEGER,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_definition_drafts_namespace ON definition_drafts (namespace_id, definition_id, made_at, id)
;

CREATE TABLE IF NOT EXISTS definition_pointers (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    definition_id TEXT NOT NULL,
    current_version INTEGER,
    latest_version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_definition_pointers_namespace ON definition_pointers (namespace_id, definition_id)
;

CREATE TABLE IF NOT EXISTS definitions (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    definition_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    published_at INTEGER NOT NULL,
    published_by TEXT NOT NULL,
    retired_at INTEGER,
    revision INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_definitions_namespace ON definitions (namespace_id, definition_id, version)
;

CREATE TABLE IF NOT EXISTS deliveries (
    id TEXT NOT NULL,
    subscription_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    visible_at INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_deliveries_added ON deliveries (subscription_id, added_at)
;

CREATE INDEX IF NOT EXISTS ix_deliveries_visible ON deliveries (subscription_id, visible_at, id)
;

CREATE TABLE IF NOT EXISTS events (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    workflow_id TEXT,
    task_id TEXT,
    aggregate_kind TEXT NOT NULL,
    aggregate_id TEXT NOT NULL,
    aggregate_revision INTEGER NOT NULL,
    type TEXT NOT NULL,
    state_scope TEXT,
    state TEXT,
    step_key TEXT,
    signal_id TEXT,
    occurred_at INTEGER NOT NULL,
    payload TEXT NOT NULL,
    fanned_out INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_events_fanned_out ON events (fanned_out, id)
;

CREATE INDEX IF NOT EXISTS ix_events_workflow ON events (namespace_id, workflow_id, occurred_at, id)
;

CREATE TABLE IF NOT EXISTS evidence (
    id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt_id TEXT,
    namespace_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT,
    digest TEXT,
    contradiction INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_evidence_task ON evidence (task_id, at)
;

CREATE TABLE IF NOT EXISTS fair_flows (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    queue_id TEXT NOT NULL,
    name TEXT NOT NULL,
    weight INTEGER NOT NULL,
    finish INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_fair_flows_queue ON fair_flows (queue_id, id)
;

CREATE TABLE IF NOT EXISTS idempotency (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT,
    subject_id TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_idempotency_expires ON idempotency (expires_at)
;

CREATE INDEX IF NOT EXISTS ix_idempotency_subject ON idempotency (subject_id)
;

CREATE TABLE IF NOT EXISTS inbox (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    activation_id TEXT NOT NULL,
    source_revision INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_inbox_instance ON inbox (instance_id, state)
;

CREATE INDEX IF NOT EXISTS ix_inbox_state ON inbox (state, created_at, id)
;

CREATE TABLE IF NOT EXISTS instance_inputs (
    instance_id TEXT NOT NULL,
    input TEXT NOT NULL,
    digest TEXT NOT NULL,
    labels TEXT,
    started_by TEXT NOT NULL,
    origin TEXT,
    idempotency_id TEXT,
    policy TEXT,
    PRIMARY KEY (instance_id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS instance_outputs (
    instance_id TEXT NOT NULL,
    output TEXT,
    error TEXT,
    PRIMARY KEY (instance_id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS instances (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    definition_key TEXT NOT NULL,
    definition_id TEXT NOT NULL,
    definition_version INTEGER NOT NULL,
    effect_root TEXT NOT NULL,
    state TEXT NOT NULL,
    paused INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    stopping TEXT,
    control_version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    pending_signals INTEGER NOT NULL,
    checkpoint TEXT,
    advance_due_at INTEGER,
    business_key TEXT,
    parameters_version INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    heir TEXT,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_instances_advance ON instances (advance_due_at, id)
;

CREATE INDEX IF NOT EXISTS ix_instances_business_key ON instances (namespace_id, business_key, id)
;

CREATE INDEX IF NOT EXISTS ix_instances_definition ON instances (namespace_id, definition_id, id)
;

CREATE INDEX IF NOT EXISTS ix_instances_namespace ON instances (namespace_id, id)
;

CREATE INDEX IF NOT EXISTS ix_instances_state ON instances (namespace_id, state, id)
;

CREATE TABLE IF NOT EXISTS key_classes (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    queue TEXT NOT NULL,
    name TEXT NOT NULL,
    running_max INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_key_classes_namespace ON key_classes (namespace_id, queue, name)
;

CREATE TABLE IF NOT EXISTS key_places (
    id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    admitted_at INTEGER,
    priority INTEGER NOT NULL,
    virtual_start INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_key_places_order ON key_places (key_id, admitted_at, priority DESC, virtual_start, id)
;

CREATE TABLE IF NOT EXISTS limits (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    queue TEXT,
    running_max INTEGER,
    running INTEGER NOT NULL,
    backlog_max INTEGER,
    backlog INTEGER NOT NULL,
    rate INTEGER,
    rate_per_ms INTEGER NOT NULL,
    burst INTEGER NOT NULL,
    level INTEGER NOT NULL,
    level_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_limits_namespace ON limits (namespace_id, queue)
;

CREATE TABLE IF NOT EXISTS namespaces (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    settings TEXT NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE TABLE IF NOT EXISTS nodes (
    id TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    address TEXT,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE TABLE IF NOT EXISTS payloads (
    id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_payloads_instance ON payloads (instance_id)
;

CREATE TABLE IF NOT EXISTS purges (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE TABLE IF NOT EXISTS queues (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    paused INTEGER NOT NULL,
    wake_seq INTEGER NOT NULL,
    virtual_time INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_queues_namespace ON queues (namespace_id, name)
;

CREATE TABLE IF NOT EXISTS readers (
    id TEXT NOT NULL,
    acknowledged INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    redelivered INTEGER NOT NULL,
    pulled_at INTEGER,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE TABLE IF NOT EXISTS rosters (
    id TEXT NOT NULL,
    subscriptions INTEGER NOT NULL,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE TABLE IF NOT EXISTS schedule_fires (
    id TEXT NOT NULL,
    schedule_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    cause TEXT NOT NULL,
    state TEXT NOT NULL,
    planned_at INTEGER NOT NULL,
    start_at INTEGER,
    first_at INTEGER,
    merged INTEGER NOT NULL,
    target_kind TEXT NOT NULL,
    target_id TEXT,
    target_version INTEGER,
    reason TEXT,
    note TEXT,
    outcome TEXT,
    decided_at INTEGER,
    finished_at INTEGER,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_schedule_fires_planned ON schedule_fires (schedule_id, planned_at, id)
;

CREATE INDEX IF NOT EXISTS ix_schedule_fires_schedule ON schedule_fires (schedule_id, state, start_at)
;

CREATE INDEX IF NOT EXISTS ix_schedule_fires_target ON schedule_fires (target_id)
;

CREATE TABLE IF NOT EXISTS schedule_inbox (
    id TEXT NOT NULL,
    schedule_id TEXT NOT NULL,
    fire_id TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_schedule_inbox_state ON schedule_inbox (state, created_at, id)
;

CREATE TABLE IF NOT EXISTS schedule_records (
    id TEXT NOT NULL,
    schedule_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    reason TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_schedule_records_schedule ON schedule_records (schedule_id, at, id)
;

CREATE TABLE IF NOT EXISTS schedule_versions (
    id TEXT NOT NULL,
    schedule_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    effective_at INTEGER NOT NULL,
    live INTEGER NOT NULL,
    spec TEXT NOT NULL,
    made_by TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    priority_max INTEGER,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_schedule_versions_schedule ON schedule_versions (schedule_id, version)
;

CREATE TABLE IF NOT EXISTS schedules (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    accounted_to INTEGER NOT NULL,
    due_at INTEGER,
    unfinished INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    kept_from INTEGER,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_schedules_due ON schedules (due_at, id)
;

CREATE INDEX IF NOT EXISTS ix_schedules_namespace ON schedules (namespace_id, id)
;

CREATE TABLE IF NOT EXISTS sessions (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    credential_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    nonce TEXT NOT NULL,
    worker TEXT NOT NULL,
    build TEXT,
    handlers TEXT NOT NULL,
    queues TEXT NOT NULL,
    connected_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    closed_at INTEGER,
    stuck INTEGER NOT NULL,
    refused TEXT,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_sessions_namespace ON sessions (namespace_id, id)
;

CREATE INDEX IF NOT EXISTS ix_sessions_open ON sessions (closed_at, seen_at)
;

CREATE TABLE IF NOT EXISTS signal_bodies (
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    digest TEXT NOT NULL,
    actor TEXT NOT NULL,
    on_behalf_of TEXT,
    accepted_at INTEGER NOT NULL,
    parameters_version INTEGER NOT NULL,
    evidence TEXT,
    PRIMARY KEY (id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS signals (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    signal TEXT NOT NULL,
    match_key TEXT,
    step_key TEXT,
    activation_id TEXT,
    state TEXT NOT NULL,
    leftover_of TEXT,
    revision INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    expires_at INTEGER,
    disposition TEXT,
    consumed_step TEXT,
    consumed_wait_id TEXT,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_signals_expires ON signals (state, expires_at, id)
;

CREATE INDEX IF NOT EXISTS ix_signals_instance ON signals (instance_id, state)
;

CREATE TABLE IF NOT EXISTS steps (
    id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    step_id TEXT NOT NULL,
    step_key TEXT NOT NULL,
    activation_no INTEGER NOT NULL,
    state TEXT NOT NULL,
    live INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    reason TEXT,
    review_class TEXT,
    exit_taken TEXT,
    task_id TEXT,
    task_revision INTEGER NOT NULL,
    round INTEGER NOT NULL,
    attempts_spent INTEGER NOT NULL,
    effect_possible INTEGER NOT NULL,
    signal TEXT,
    match_key TEXT,
    opened_at INTEGER NOT NULL,
    deadline_at INTEGER,
    due_at INTEGER,
    arms TEXT,
    result_ref TEXT,
    failure_ref TEXT,
    closed_at INTEGER,
    last INTEGER NOT NULL,
    granted TEXT,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_steps_due ON steps (due_at, id)
;

CREATE INDEX IF NOT EXISTS ix_steps_instance ON steps (instance_id, live)
;

CREATE INDEX IF NOT EXISTS ix_steps_state ON steps (namespace_id, state, id)
;

CREATE TABLE IF NOT EXISTS subscriptions (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    filter TEXT NOT NULL,
    when_full TEXT NOT NULL,
    backlog_max INTEGER NOT NULL,
    visibility_ms INTEGER NOT NULL,
    retention_ms INTEGER NOT NULL,
    added INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    dropped_first_at INTEGER,
    dropped_last_at INTEGER,
    made_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_subscriptions_namespace ON subscriptions (namespace_id, id)
;

CREATE TABLE IF NOT EXISTS task_progress (
    task_id TEXT NOT NULL,
    attempt_id TEXT NOT NULL,
    body TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (task_id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS task_results (
    task_id TEXT NOT NULL,
    result TEXT,
    error TEXT,
    digest TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (task_id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS task_specs (
    task_id TEXT NOT NULL,
    parameters TEXT NOT NULL,
    digest TEXT NOT NULL,
    policy TEXT,
    effect_key TEXT NOT NULL,
    labels TEXT,
    parameters_version INTEGER NOT NULL,
    submitted_by TEXT,
    retry_of TEXT,
    linked_to TEXT,
    idempotency_id TEXT,
    trace TEXT,
    PRIMARY KEY (task_id)
)
 STRICT
;

CREATE TABLE IF NOT EXISTS tasks (
    id TEXT NOT NULL,
    namespace_id TEXT NOT NULL,
    queue_id TEXT NOT NULL,
    queue TEXT NOT NULL,
    handler TEXT NOT NULL,
    handler_version INTEGER NOT NULL,
    state TEXT NOT NULL,
    blocked INTEGER NOT NULL,
    gate INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    virtual_start INTEGER NOT NULL,
    due_at INTEGER,
    deadline_at INTEGER,
    latest_start_at INTEGER,
    total_deadline_at INTEGER,
    attempt_timeout_ms INTEGER NOT NULL,
    attempts_used INTEGER NOT NULL,
    attempts_max INTEGER NOT NULL,
    uncharged INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    recovery TEXT NOT NULL,
    can_verify INTEGER NOT NULL,
    verify_deadline_at INTEGER,
    attempt_id TEXT,
    lease_until INTEGER,
    cancel_requested INTEGER NOT NULL,
    effect_possible INTEGER NOT NULL,
    late_success INTEGER NOT NULL,
    detached INTEGER NOT NULL,
    review_class TEXT,
    error_code TEXT,
    instance_id TEXT,
    activation_id TEXT,
    step_key TEXT,
    round INTEGER NOT NULL,
    business_key TEXT,
    concurrency_key TEXT,
    fairness_key TEXT,
    counted INTEGER NOT NULL,
    probe_of TEXT,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    lock_seq INTEGER DEFAULT 0 NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (id)
)
 WITHOUT ROWID,
 STRICT
;

CREATE INDEX IF NOT EXISTS ix_tasks_business_key ON tasks (namespace_id, business_key, id)
;

CREATE INDEX IF NOT EXISTS ix_tasks_deadline ON tasks (deadline_at, id)
;

CREATE INDEX IF NOT EXISTS ix_tasks_due ON tasks (due_at, id)
;

CREATE INDEX IF NOT EXISTS ix_tasks_instance ON tasks (instance_id)
;

CREATE INDEX IF NOT EXISTS ix_tasks_lease ON tasks (lease_until, id)
;

CREATE INDEX IF NOT EXISTS ix_tasks_namespace ON tasks (namespace_id, id)
;

CREATE INDEX IF NOT EXISTS ix_tasks_ready ON tasks (queue_id, state, blocked, handler, handler_version, priority DESC, virtual_start, id)
;

