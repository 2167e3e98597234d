"""Wire models of drafts, of plans to publish, and of the versions that are still in use."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from orbit_sdk.protocol.common import Answer, Counter, Digest, Instant, Request
from orbit_sdk.protocol.definitions import Finding


class KeepDraft(Request):
    """`definition` is the whole document; `side` its optional side table (source places)."""

    definition: dict[str, JsonValue]
    side: dict[str, JsonValue] | None = None


class Draft(Answer):
    """A definition on trial, named by its digest; `version` is only what its document says. `used`: some
    workflow was started from it.
    """

    definition_id: str
    version: int
    digest: Digest
    made_at: Instant
    made_by: str
    used: bool = False


class DraftDetail(Draft):
    definition: dict[str, JsonValue]
    side: dict[str, JsonValue] | None = None


class PlanDefinition(Request):
    definition: dict[str, JsonValue]


class PlannedChange(Answer):
    """`path` is where in the document, `affects` who has to do with it."""

    path: str
    what: str
    affects: str
    verdict: Literal["SAFE", "CAREFUL", "BREAKING"]


class LackingHandler(Answer):
    """A handler that no worker, connected or gone for less than 15 minutes, offers on a step's queue."""

    handler: str
    queue: str
    reason: Literal["NO_WORKER", "OTHER_TYPES", "OTHER_QUEUE", "BUILD_BLOCKED"]
    message: str


class PublishPlan(Answer):
    """What publishing would mean. `changes` are those since `compared_with`: the current version, or the
    latest where none is current. `retired`: the version is published and takes no new starts.
    """

    definition_id: str
    version: int
    digest: Digest
    ok: bool
    outcome: Literal["NEW", "SAME", "CONFLICT"]
    retired: bool = False
    current_version: int | None = None
    latest_version: int | None = None
    compared_with: int | None = None
    verdict: Literal["SAFE", "CAREFUL", "BREAKING"]
    changes: list[PlannedChange] = []
    lacking: list[LackingHandler] = []
    findings: list[Finding] = []


class VersionInUse(Answer):
    """`open`: workflows that are not finished; `since` when the oldest of them started."""

    definition_id: str
    version: int
    draft: bool = False
    current: bool = False
    retired: bool = False
    open: Counter
    since: Instant | None = None


class HandlerInUse(Answer):
    """Who needs a handler version and who offers it. `tasks`: not settled, the oldest created at `since`;
    `workflows`: not finished, of definitions that name it; `started_by`: versions that name it and take
    starts. `needed` is false when none of the three is left: workers may stop offering it.
    """

    handler: str
    needed: bool
    tasks: Counter
    since: Instant | None = None
    workflows: Counter
    started_by: list[str] = []
    workers: int
    builds: list[str] = []


class VersionsInUse(Answer):
    """`more`: there are more versions than are shown; ask for one definition."""

    definitions: list[VersionInUse]
    handlers: list[HandlerInUse]
    more: bool = False
