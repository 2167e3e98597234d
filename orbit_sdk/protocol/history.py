"""Wire models of history: activations of a step, rounds, operations of people, origin of a task."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from orbit_sdk.protocol.common import Answer, Id, Instant
from orbit_sdk.protocol.workflows import Signal, StepDetail


class Activation(StepDetail):
    """One run of a step with what it was given and what it left. `attempts_spent` counts its round."""

    attempts_spent: int = 0
    parameters: JsonValue = None


class Round(Answer):
    """One task of a step. `round` counts the rounds of a POLL; it is absent for a TASK."""

    task_id: Id
    round: int | None = None
    activation_id: Id
    task_state: str
    attempts_used: int
    attempts_max: int
    created_at: Instant
    settled_at: Instant | None = None
    error_code: str | None = None
    result: JsonValue = None
    error: JsonValue = None


class Operation(Answer):
    """What somebody did, why, and on what evidence; the digests are of how it stood before and after."""

    id: Id
    at: Instant
    actor: str
    on_behalf_of: str | None = None
    action: str
    step_key: str | None = None
    activation_id: Id | None = None
    reason: str | None = None
    basis: str | None = None
    evidence: str | None = None
    before_digest: str | None = None
    after_digest: str | None = None
    details: JsonValue = None


class Origin(Answer):
    """Why a task exists: the step of a workflow that ordered it, or the request that submitted it."""

    task_id: Id
    kind: Literal["WORKFLOW", "SUBMITTED"]
    workflow_id: Id | None = None
    definition_id: str | None = None
    definition_version: int | None = None
    step_key: str | None = None
    activation_id: Id | None = None
    activation_no: int | None = None
    round: int | None = None
    business_key: str | None = None
    effect_key: str
    retry_of: Id | None = None
    submitted_by: str | None = None


class SignalDetail(Signal):
    """A signal with what was sent, by whom, and what it rests on."""

    body: JsonValue = None
    actor: str
    on_behalf_of: str | None = None
    parameters_version: int = 1
    evidence: str | None = None
    activation_id: Id | None = None
    consumed_step: str | None = None
