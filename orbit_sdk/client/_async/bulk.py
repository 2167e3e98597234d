"""Many at once: a plan asks what would follow for each item, then the same orders are given for real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

from orbit_sdk.client._async.reviews import AsyncReviews
from orbit_sdk.client._async.workflows import AsyncWorkflows
from orbit_sdk.client.wire import new_key
from orbit_sdk.errors import Conflict, FailedPrecondition, InvalidArgument, NotFound, OrbitError, Unavailable
from orbit_sdk.protocol.bulk import BulkItem, BulkOutcome, BulkPlan
from orbit_sdk.protocol.workflows import Forecast
from orbit_sdk.values.ids import derive_id


class AsyncBulk:
    """`client.bulk`."""

    def __init__(self, workflows: AsyncWorkflows, reviews: AsyncReviews) -> None:
        self._workflows = workflows
        self._reviews = reviews

    async def plan_reviews(
        self,
        decision: Mapping[str, Any],
        *,
        review_class: str | None = None,
        definition_id: str | None = None,
        step_key: str | None = None,
        most: int = 1000,
    ) -> BulkPlan:
        """One decision for every step in review that fits; each is asked what would follow.

        `decision` has the fields of `protocol.workflows.DecideReview` without the revision.
        """
        items: list[BulkItem] = []
        async for found in self._reviews.list(kind="STEP", review_class=review_class):
            fits = definition_id in (None, found.definition_id) and step_key in (None, found.step_key)
            if not fits or found.workflow_id is None or found.step_key is None:
                continue
            item = BulkItem(
                workflow_id=found.workflow_id,
                step_key=found.step_key,
                business_key=found.business_key,
                expected=found.revision,
                allowed=False,
            )
            items.append(await self._asked(item, "review", decision))
            if len(items) == most:
                break
        return BulkPlan(id=derive_id("bulk", new_key()), action="review", order=dict(decision), items=items)

    async def plan_control(
        self,
        action: Literal["pause", "resume", "cancel"],
        *,
        reason: str,
        definition_id: str | None = None,
        version: int | None = None,
        state: str | None = None,
        most: int = 1000,
    ) -> BulkPlan:
        """One control for every open workflow that fits; each is asked what would follow."""
        order = {"reason": reason}
        items: list[BulkItem] = []
        async for found in self._workflows.list(definition_id=definition_id, version=version, state=state):
            if found.ended_at is not None:
                continue
            item = BulkItem(
                workflow_id=found.id,
                business_key=found.business_key,
                expected=found.control_version,
                allowed=False,
            )
            items.append(await self._asked(item, action, order))
            if len(items) == most:
                break
        return BulkPlan(id=derive_id("bulk", new_key()), action=action, order=dict(order), items=items)

    async def apply(
        self, plan: BulkPlan, *, per_second: float = 10.0, stop_after: int = 3
    ) -> AsyncIterator[BulkOutcome]:
        """Do what was planned, item by item. What moved on since is skipped.

        Ends early after `stop_after` items that failed for other reasons. Applying a plan again, or elsewhere
        at the same time, is harmless: every item is done once.
        """
        if per_second <= 0:
            raise InvalidArgument.at("per_second", "must be more than 0")
        failed = 0
        for item in plan.items:
            if not item.allowed:
                yield _outcome(item, "SKIPPED", why=item.why)
                continue
            try:
                state, _ = await self._order(item, plan.action, plan.order, _operation(plan, item))
                yield _outcome(item, "DONE", state=state)
            except (FailedPrecondition, Conflict, NotFound) as moved:
                yield _outcome(item, "SKIPPED", why=moved.message)
            except OrbitError as error:
                failed += 1
                yield _outcome(item, "FAILED", why=error.message)
                if failed >= stop_after or isinstance(error, Unavailable):
                    return
            await asyncio.sleep(1 / per_second)

    async def _asked(self, item: BulkItem, action: str, order: Mapping[str, Any]) -> BulkItem:
        try:
            _, forecast = await self._order(item, action, {**order, "dry_run": True}, new_key())
        except (FailedPrecondition, NotFound, InvalidArgument) as refused:
            return item.model_copy(update={"why": refused.message})
        then = None if forecast is None else forecast.state
        return item.model_copy(update={"allowed": True, "then": then})

    async def _order(
        self, item: BulkItem, action: str, order: Mapping[str, Any], operation_id: str
    ) -> tuple[str, Forecast | None]:
        if action == "review":
            said = {**order, "expected_revision": str(item.expected)}
            key = item.step_key or ""
            decided = await self._reviews.resolve_step(item.workflow_id, key, said, operation_id=operation_id)
            return decided.state, decided.forecast
        control = getattr(self._workflows, action)
        done = await control(
            item.workflow_id,
            reason=order["reason"],
            expected_control_version=item.expected,
            operation_id=operation_id,
            dry_run=bool(order.get("dry_run")),
        )
        return done.workflow.state, done.forecast


def _operation(plan: BulkPlan, item: BulkItem) -> str:
    return f"bulk:{derive_id('bulk item', plan.id, item.workflow_id, item.step_key or '')}"


def _outcome(
    item: BulkItem,
    outcome: Literal["DONE", "SKIPPED", "FAILED"],
    *,
    state: str | None = None,
    why: str | None = None,
) -> BulkOutcome:
    return BulkOutcome(
        workflow_id=item.workflow_id, step_key=item.step_key, outcome=outcome, state=state, why=why
    )
