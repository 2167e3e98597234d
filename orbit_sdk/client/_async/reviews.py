"""What waits for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from orbit_sdk.client._async.pages import each, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.checks import check_same
from orbit_sdk.client.wire import Call, new_key, spoken
from orbit_sdk.protocol.explain import Stuck
from orbit_sdk.protocol.reviews import ReviewDetail
from orbit_sdk.protocol.tasks import Task
from orbit_sdk.protocol.workflows import ReviewItem, ReviewResult


class AsyncReviews:
    """`client.reviews`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, *, kind: str | None = None, review_class: str | None = None) -> AsyncIterator[ReviewItem]:
        """Steps and standalone tasks in review, newest first."""
        return each(self._transport, "/v1/reviews", ReviewItem, {"kind": kind, "review_class": review_class})

    async def stuck(self, *, definition_id: str | None = None) -> Stuck:
        """What is in review, counted by definition, step and reason, the largest groups first."""
        call = Call("GET", "/v1/reviews/stuck", params={"definition_id": definition_id})
        return parse(Stuck, await self._transport.call(call))

    async def get(self, workflow_id: str, step_key: str) -> ReviewDetail:
        """A step in review: what was tried, what is known, what may be decided and why not the rest."""
        path = f"/v1/workflows/{workflow_id}/reviews/{step_key}"
        found = parse(ReviewDetail, await self._transport.call(Call("GET", path)))
        check_same(found.workflow_id, workflow_id, "workflow")
        return found

    async def probe(  # noqa: PLR0913  # one keyword per thing a probe may say
        self,
        workflow_id: str,
        step_key: str,
        *,
        reason: str,
        handler: str | None = None,
        queue: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        attempt_timeout_ms: int | None = None,
        start_within_ms: int | None = None,
        operation_id: str | None = None,
        on_behalf_of: str | None = None,
    ) -> Task:
        """Find out about a step in review: its verify handler is asked, or the READ_ONLY `handler` is run.

        The answer is the probe, a task that ends by itself; what it found is evidence of the review.
        """
        body = spoken(
            reason=reason,
            handler=handler,
            queue=queue,
            parameters=None if parameters is None else dict(parameters),
            attempt_timeout_ms=attempt_timeout_ms,
            start_within_ms=start_within_ms,
            on_behalf_of=on_behalf_of,
        )
        path = f"/v1/workflows/{workflow_id}/reviews/{step_key}/probe"
        call = Call("POST", path, body=body, key=operation_id or new_key())
        return parse(Task, await self._transport.call(call))

    async def grant(  # noqa: PLR0913  # one keyword per thing a grant may say
        self,
        workflow_id: str,
        step_key: str,
        *,
        expected_revision: int,
        reason: str,
        attempts: int = 0,
        rounds: int = 0,
        time_ms: int = 0,
        operation_id: str | None = None,
        dry_run: bool = False,
        on_behalf_of: str | None = None,
    ) -> ReviewResult:
        """Add attempts (of the present round), rounds or time to a step in review, so that it may be run
        again. Needs workflows:grant.
        """
        path = f"/v1/workflows/{workflow_id}/reviews/{step_key}/grant"
        body = spoken(
            expected_revision=str(expected_revision),
            reason=reason,
            attempts=attempts or None,
            rounds=rounds or None,
            time_ms=time_ms or None,
            dry_run=dry_run or None,
            on_behalf_of=on_behalf_of,
        )
        call = Call("POST", path, body=body, key=operation_id or new_key())
        found = parse(ReviewResult, await self._transport.call(call))
        check_same(found.id, workflow_id, "workflow")
        return found

    async def resolve_step(
        self,
        workflow_id: str,
        step_key: str,
        decision: Mapping[str, Any],
        *,
        operation_id: str | None = None,
    ) -> ReviewResult:
        """Decide on a step; `decision` has the fields of `protocol.workflows.DecideReview`.

        With `"dry_run": True` nothing is done; `forecast` in the answer says what would follow.
        """
        path = f"/v1/workflows/{workflow_id}/reviews/{step_key}"
        call = Call("POST", path, body=dict(decision), key=operation_id or new_key())
        found = parse(ReviewResult, await self._transport.call(call))
        check_same(found.id, workflow_id, "workflow")
        return found
