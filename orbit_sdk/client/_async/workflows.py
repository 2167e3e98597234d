"""Workflow instances by id: everything the interface offers, untyped in input and output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal, Unpack

from orbit_sdk.client._async.pages import each, page, parse
from orbit_sdk.client._async.transport import AsyncTransport
from orbit_sdk.client.checks import check_event_detail, check_event_page, check_same
from orbit_sdk.client.filters import WorkflowFilters, params_of
from orbit_sdk.client.wire import Call, new_key, spoken
from orbit_sdk.protocol.common import Count, Page
from orbit_sdk.protocol.explain import WorkflowWhy
from orbit_sdk.protocol.history import Activation, Operation, Round, SignalDetail
from orbit_sdk.protocol.workflows import (
    BatchResult,
    ControlResult,
    EventDetail,
    EventPage,
    RestartResult,
    Signal,
    StepDetail,
    Steps,
    Workflow,
    WorkflowDetail,
)

_ORIGINAL: Final = object()


class AsyncWorkflows:
    """`client.workflows`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def start(  # noqa: PLR0913  # one keyword per thing a start may say
        self,
        definition_id: str,
        input: Any,  # noqa: A002  # the word of the interface
        *,
        version: int | None = None,
        draft: str | None = None,
        idempotency_key: str | None = None,
        business_key: str | None = None,
        labels: Mapping[str, str] | None = None,
        parameters_version: int = 1,
    ) -> Workflow:
        """Start an instance. Without `version` the current one is taken, resolved once.

        `draft`: the digest of a draft, which is run instead.
        """
        body = start_body(definition_id, input, version, business_key, labels, parameters_version)
        if draft is not None:
            body["draft"] = draft
        call = Call("POST", "/v1/workflows", body=body, key=idempotency_key or new_key())
        return parse(Workflow, await self._transport.call(call))

    async def restart(  # noqa: PLR0913  # one keyword per thing a restart may say
        self,
        workflow_id: str,
        *,
        effects: Literal["SAME", "NEW"],
        reason: str,
        version: int | None = None,
        input: Any = _ORIGINAL,  # noqa: A002  # the word of the interface
        operation_id: str | None = None,
        dry_run: bool = False,
        on_behalf_of: str | None = None,
    ) -> RestartResult:
        """Start a new instance from an earlier one; without `input` with the same.

        SAME means the very effects of the origin, under the same effect keys; NEW means other ones.
        With `dry_run` nothing is done; `forecast` in the answer says what would follow.
        Raises FailedPrecondition when SAME is asked while the effects may still happen.
        """
        body = spoken(
            effects=effects,
            reason=reason,
            version=version,
            dry_run=dry_run or None,
            on_behalf_of=on_behalf_of,
        )
        if input is not _ORIGINAL:
            body["input"] = input
        path = f"/v1/workflows/{workflow_id}/restart"
        call = Call("POST", path, body=body, key=operation_id or new_key())
        return parse(RestartResult, await self._transport.call(call))

    async def start_batch(self, items: Sequence[Mapping[str, Any]]) -> BatchResult:
        """Start up to 1,000 instances, each with its `idempotency_key`; one result per item, in order."""
        call = Call("POST", "/v1/workflows/batch", body={"items": [dict(item) for item in items]})
        return parse(BatchResult, await self._transport.call(call))

    async def get(
        self, workflow_id: str, *, wait: float = 0, after_revision: int | None = None
    ) -> WorkflowDetail:
        """One instance.

        With `wait` (seconds, at most 20) the server answers when it moved past `after_revision`, ended, or
        needs a person.
        """
        params: dict[str, Any] = {}
        if wait > 0:
            params = {"wait_ms": int(wait * 1000), "after_revision": after_revision}
        call = Call("GET", f"/v1/workflows/{workflow_id}", params=params, timeout=wait + 30)
        found = parse(WorkflowDetail, await self._transport.call(call))
        check_same(found.id, workflow_id, "workflow")
        return found

    def list(self, **filters: Unpack[WorkflowFilters]) -> AsyncIterator[Workflow]:
        """Instances, newest first."""
        return each(self._transport, "/v1/workflows", Workflow, params_of(filters))

    async def count(self, group_by: str | None = None, **filters: Unpack[WorkflowFilters]) -> Count:
        """How many instances there are; in groups by state, definition, paused, step, reason, error_code or
        `label:<name>`.
        """
        params = {**params_of(filters), "group_by": group_by}
        return parse(Count, await self._transport.call(Call("GET", "/v1/workflows/count", params=params)))

    async def page(
        self, *, cursor: str | None = None, limit: int | None = None, **filters: Unpack[WorkflowFilters]
    ) -> Page[Workflow]:
        """One page of instances, newest first. One with many filters may be short and still have a next."""
        return await page(self._transport, "/v1/workflows", Workflow, params_of(filters), cursor, limit)

    async def steps(self, workflow_id: str) -> Steps:
        """Every step as it stands."""
        found = parse(Steps, await self._transport.call(Call("GET", f"/v1/workflows/{workflow_id}/steps")))
        check_same(found.workflow_id, workflow_id, "steps of workflow")
        return found

    async def step(self, workflow_id: str, step_key: str) -> StepDetail:
        """One step with its result or failure."""
        path = f"/v1/workflows/{workflow_id}/steps/{step_key}"
        found = parse(StepDetail, await self._transport.call(Call("GET", path)))
        check_same(found.key, step_key, "step")
        return found

    async def why(self, workflow_id: str) -> WorkflowWhy:
        """What it waits for, what happens by itself, and what would move it."""
        call = Call("GET", f"/v1/workflows/{workflow_id}/why")
        found = parse(WorkflowWhy, await self._transport.call(call))
        check_same(found.workflow_id, workflow_id, "workflow")
        return found

    async def signal(  # noqa: PLR0913  # one keyword per thing a signal may say
        self,
        workflow_id: str,
        signal: str,
        match: str | int,
        body: Any,
        *,
        idempotency_key: str | None = None,
        step_key: str | None = None,
        expires_at: str | None = None,
        evidence: str | None = None,
        on_behalf_of: str | None = None,
    ) -> Signal:
        """Send a signal; the receipt says whether it was consumed at once.

        The idempotency key is the signal's identity.
        """
        content = spoken(
            step_key=step_key, expires_at=expires_at, evidence=evidence, on_behalf_of=on_behalf_of
        ) | {"signal": signal, "match": match, "body": body}
        path = f"/v1/workflows/{workflow_id}/signals"
        call = Call("POST", path, body=content, key=idempotency_key or new_key())
        found = parse(Signal, await self._transport.call(call))
        check_same(found.workflow_id, workflow_id, "a signal of workflow")
        return found

    async def signal_by_key(  # noqa: PLR0913  # one keyword per thing a signal may say
        self,
        definition_id: str,
        business_key: str,
        signal: str,
        body: Any,
        *,
        match: str | int | None = None,
        idempotency_key: str | None = None,
        step_key: str | None = None,
        expires_at: str | None = None,
        evidence: str | None = None,
        on_behalf_of: str | None = None,
    ) -> Signal:
        """Send a signal to the one open workflow of a definition that has this business key.

        Without `match` the business key is what the wait has to match. Raises NotFound when none is open,
        Conflict (naming some) when several are.
        """
        content = spoken(
            match=match,
            step_key=step_key,
            expires_at=expires_at,
            evidence=evidence,
            on_behalf_of=on_behalf_of,
        ) | {"business_key": business_key, "signal": signal, "body": body}
        path = f"/v1/definitions/{definition_id}/signals"
        call = Call("POST", path, body=content, key=idempotency_key or new_key())
        return parse(Signal, await self._transport.call(call))

    def signals(self, workflow_id: str, *, state: str | None = None) -> AsyncIterator[Signal]:
        """The signals of an instance, newest first."""
        return each(self._transport, f"/v1/workflows/{workflow_id}/signals", Signal, {"state": state})

    async def signal_detail(self, workflow_id: str, signal_id: str) -> SignalDetail:
        """One signal with what was sent, by whom, and on what evidence."""
        path = f"/v1/workflows/{workflow_id}/signals/{signal_id}"
        found = parse(SignalDetail, await self._transport.call(Call("GET", path)))
        check_same(found.id, signal_id, "signal")
        return found

    def activations(self, workflow_id: str, step_key: str) -> AsyncIterator[Activation]:
        """The activations of a step with what each was given and left, newest first."""
        path = f"/v1/workflows/{workflow_id}/steps/{step_key}/activations"
        return each(self._transport, path, Activation, {})

    def rounds(self, workflow_id: str, step_key: str) -> AsyncIterator[Round]:
        """The tasks of a step, the rounds of a POLL, newest first."""
        return each(self._transport, f"/v1/workflows/{workflow_id}/steps/{step_key}/rounds", Round, {})

    def operations(self, workflow_id: str) -> AsyncIterator[Operation]:
        """What people did to an instance, newest first. Needs workflows:audit:read."""
        return each(self._transport, f"/v1/workflows/{workflow_id}/operations", Operation, {})

    async def cancel(
        self,
        workflow_id: str,
        *,
        reason: str,
        expected_control_version: int | None = None,
        operation_id: str | None = None,
        dry_run: bool = False,
        on_behalf_of: str | None = None,
    ) -> ControlResult:
        """Stop what has not started, ask what runs, and wait for the truth. What was done stays done.

        With `dry_run` nothing is done; `forecast` in the answer says what would follow.
        """
        body = control_body(reason, expected_control_version, dry_run, on_behalf_of)
        return await self._control("cancel", workflow_id, body, operation_id)

    async def pause(
        self,
        workflow_id: str,
        *,
        reason: str,
        expected_control_version: int | None = None,
        operation_id: str | None = None,
        dry_run: bool = False,
        on_behalf_of: str | None = None,
    ) -> ControlResult:
        """Start nothing new; clocks run on, results and signals are kept."""
        body = control_body(reason, expected_control_version, dry_run, on_behalf_of)
        return await self._control("pause", workflow_id, body, operation_id)

    async def resume(
        self,
        workflow_id: str,
        *,
        reason: str,
        expected_control_version: int | None = None,
        operation_id: str | None = None,
        dry_run: bool = False,
        on_behalf_of: str | None = None,
    ) -> ControlResult:
        """Lift the pause, and nothing else."""
        body = control_body(reason, expected_control_version, dry_run, on_behalf_of)
        return await self._control("resume", workflow_id, body, operation_id)

    async def _control(
        self, action: str, workflow_id: str, body: dict[str, Any], operation_id: str | None
    ) -> ControlResult:
        call = Call("POST", f"/v1/workflows/{workflow_id}/{action}", body=body, key=operation_id or new_key())
        found = parse(ControlResult, await self._transport.call(call))
        check_same(found.workflow.id, workflow_id, "workflow")
        return found

    async def list_workflow_events(
        self, workflow_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> EventPage:
        """One page of the timeline, newest first.

        Raises Unavailable for a page that is of another workflow or out of order.
        """
        params = {"limit": limit or None, "cursor": cursor or None}
        call = Call("GET", f"/v1/workflows/{workflow_id}/events", params=params)
        found = parse(EventPage, await self._transport.call(call))
        check_event_page(found, workflow_id, limit=limit, cursor=cursor)
        return found

    async def get_workflow_event(self, workflow_id: str, event_id: str) -> EventDetail:
        """One event with its payload."""
        path = f"/v1/workflows/{workflow_id}/events/{event_id}"
        found = parse(EventDetail, await self._transport.call(Call("GET", path)))
        check_event_detail(found, workflow_id, event_id)
        return found


def control_body(
    reason: str, expected: int | None, dry_run: bool, on_behalf_of: str | None = None
) -> dict[str, Any]:
    """The body of a control; with `dry_run` the server tells what would follow and does nothing."""
    return spoken(
        reason=reason,
        expected_control_version=None if expected is None else str(expected),
        dry_run=dry_run or None,
        on_behalf_of=on_behalf_of,
    )


def start_body(
    definition_id: str,
    given: Any,
    version: int | None,
    business_key: str | None,
    labels: Mapping[str, str] | None,
    parameters_version: int,
) -> dict[str, Any]:
    """The body of a start; absent means the server's default."""
    body: dict[str, Any] = {"definition_id": definition_id, "input": given}
    if version is not None:
        body["version"] = version
    if business_key is not None:
        body["business_key"] = business_key
    if labels:
        body["labels"] = dict(labels)
    if parameters_version != 1:
        body["parameters_version"] = parameters_version
    return body
