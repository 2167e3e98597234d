"""Wire models of one review: what was tried, what is known, and what may be decided."""

from __future__ import annotations

from typing import Literal

from orbit_sdk.protocol.common import Answer, Id
from orbit_sdk.protocol.tasks import Attempt, Evidence
from orbit_sdk.protocol.workflows import StepDetail


class Choice(Answer):
    """One decision. `needs_proof`: only with basis PROVEN; `reason` says why, or why it is not allowed."""

    verdict: Literal["SUCCEEDED", "FAILED", "RERUN"]
    allowed: bool
    needs_proof: bool = False
    reason: str | None = None


class ReviewDetail(StepDetail):
    """A step in review. `attempts` are those of its latest tasks, newest first; `evidence` is what came late
    or contradicts; `effect_key` is what the outside knows the effect by.
    """

    workflow_id: Id
    business_key: str | None = None
    paused: bool = False
    cancel_requested: bool = False
    effect_possible: bool = False
    effect_key: str | None = None
    guide: str | None = None
    attempts: list[Attempt] = []
    evidence: list[Evidence] = []
    decisions: list[Choice] = []
    attempts_left: int | None = None
    rounds_left: int | None = None
