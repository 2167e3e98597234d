"""Wire models of waits: everything that waits for a signal of a person or another system."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from orbit_sdk.protocol.common import Answer, Id, Instant, OnBehalfOf, Request, SignalEvidence


class Wait(Answer):
    """One open wait. Its id is that of the step's activation.

    `body_type` is the type of the signal's body in the definition's own form; types that it refers to are in
    the definition. `on_timeout` says what happens after `deadline_at`: REVIEW, FAIL or `next: <step>`.
    `may_answer`: whether this credential may.
    """

    id: Id
    workflow_id: Id
    definition_id: str
    business_key: str | None = None
    step_key: str
    kind: Literal["WAIT", "POLL"]
    title: str | None = None
    signal: str
    match: str | int
    body_type: JsonValue
    since: Instant
    deadline_at: Instant | None = None
    on_timeout: str
    then: str
    guide: str | None = None
    paused: bool = False
    may_answer: bool = False


class AnswerWait(Request):
    """The answer to one wait. Its identity follows from the wait: the same answer twice is one signal,
    another answer is a conflict.
    """

    body: JsonValue
    parameters_version: int = Field(default=1, ge=1, le=2**31 - 1)
    evidence: SignalEvidence | None = None
    on_behalf_of: OnBehalfOf | None = None
    """Whom the caller acts for; needs `act:on-behalf`."""
