"""The people around the workflows: they publish, start, give signals and decide what is in review."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from orbit_sdk.client import OrbitClient
from orbit_sdk.errors import OrbitError
from orbit_sdk.protocol.workflows import ReviewItem
from tests.crash.channel import Ledger
from tests.crash.flows import WORKFLOWS, chain, fan, undeclared_one

TERMINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


async def publish(client: OrbitClient) -> None:
    for workflow in (*WORKFLOWS, undeclared_one):
        await client.definitions.publish(workflow.compile().definition.to_json(), current=True)


class Reviewer:
    """Decides reviews by the truth: asks the channel, fences what has not happened, and says so."""

    def __init__(self, client: OrbitClient, ledger: Ledger) -> None:
        self.client = client
        self.ledger = ledger
        self.refused: list[str] = []
        """What the server did not accept, in its words."""
        self.decided: dict[tuple[str, str], str] = {}
        """(workflow, step): what was decided last."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            with contextlib.suppress(OrbitError):
                async for item in self.client.reviews.list(kind="STEP"):
                    await self.decide(item)
            await asyncio.sleep(0.2)

    async def decide(self, item: ReviewItem) -> None:
        assert item.workflow_id is not None
        assert item.step_key is not None
        decision = await self._decision(item)
        # One identity for one decision on one revision: however often it is sent, it is taken once.
        operation = f"review-{item.workflow_id}-{item.step_key}-{item.revision}-{decision['verdict']}"
        try:
            await self.client.reviews.resolve_step(
                item.workflow_id, item.step_key, decision, operation_id=operation
            )
        except OrbitError as error:
            self.refused.append(f"{item.workflow_id} {item.step_key} {decision['verdict']}: {error}")
            if error.code.value == "FAILED_PRECONDITION" and decision["verdict"] == "RERUN":
                decision = self._failed(item)
                with contextlib.suppress(OrbitError):
                    await self.client.reviews.resolve_step(
                        item.workflow_id, item.step_key, decision, operation_id=f"{operation}-failed"
                    )
            return
        self.decided[item.workflow_id, item.step_key] = decision["verdict"]

    async def _decision(self, item: ReviewItem) -> dict[str, Any]:
        assert item.workflow_id is not None
        step = await self.client.workflows.step(item.workflow_id, item.step_key or "")
        base: dict[str, Any] = {
            "expected_revision": item.revision,
            "reason": "the channel was asked",
            "basis": "PROVEN",
            "evidence": "the channel's own list",
        }
        if item.step_key == "poll":
            return {**base, "verdict": "SUCCEEDED", "result": {"state": "done"}}
        assert step.task_id is not None
        task = await self.client.tasks.get(step.task_id)
        last = max([int(one.generation) async for one in self.client.tasks.attempts(step.task_id)], default=0)
        receipt = self.ledger.fence(task.effect_key, last)
        if receipt is None:
            return {**base, "verdict": "RERUN"}
        return {**base, "verdict": "SUCCEEDED", "result": {"receipt": receipt}}

    def _failed(self, item: ReviewItem) -> dict[str, Any]:
        return {
            "verdict": "FAILED",
            "expected_revision": item.revision,
            "reason": "nothing happened and nothing more may be tried",
            "basis": "PROVEN",
            "evidence": "the channel's own list",
            "code": "EXPIRED",
        }


async def ended(client: OrbitClient, ids: Iterable[str], seconds: float) -> Mapping[str, Any]:
    """Wait until all have ended; their details."""
    found: dict[str, Any] = {}
    left = set(ids)
    try:
        async with asyncio.timeout(seconds):
            while left:
                for one in sorted(left):
                    detail = await client.workflows.get(one)
                    if detail.state in TERMINAL:
                        found[one] = detail
                        left.discard(one)
                await asyncio.sleep(0.1)
    except TimeoutError:
        shown = []
        for one in sorted(left)[:5]:
            detail = await client.workflows.get(one)
            steps = await client.workflows.steps(one)
            rows = [f"{s.key}:{s.state}/{s.task_state}/{s.reason}" for s in steps.items if s.opened_at]
            shown.append(f"{one} {detail.definition_id} {detail.state} {rows}")
        raise AssertionError(f"{len(left)} never ended:\n" + "\n".join(shown)) from None
    return found


def wrongs_of_effects(ledger: Ledger, *, forgiven: frozenset[str] = frozenset()) -> list[str]:
    """Effects that a recovery level should never have let through."""
    found = []
    for key, effects in ledger.by_key().items():
        if effects[0].recovery != "IDEMPOTENT" and len(effects) > 1 and key not in forgiven:
            shown = [(one.step, one.generation, one.attempt) for one in effects]
            found.append(f"{effects[0].recovery} effect {key} of {effects[0].workflow} happened as {shown}")
        if len({(one.workflow, one.step) for one in effects}) > 1:
            found.append(f"effect key {key} was used by more than one step")
    return found


def expected_effects(kind: str, outcome: str) -> set[str]:
    """The steps whose effects a finished workflow of this kind has had."""
    if kind == chain.id:
        return {"put", "send", "stamp", "pay"}
    if kind == fan.id:
        return {"left", "after_signal", "marked", "after"}
    first = {"give_up"} if outcome == "refused" else {"reserve"}
    return first | ({"thank"} if outcome == "receipt" else set())


def unlike_what_happened(
    ledger: Ledger, workflow: str, kind: str, outcome: str, output: Mapping[str, Any]
) -> list[str]:
    """Where a finished workflow says other than what happened outside."""
    keys = {one.step: one.key for one in ledger.of_workflow(workflow)}
    found = []
    if set(keys) != expected_effects(kind, outcome):
        found.append(f"it had the effects {sorted(keys)}")
    said = {
        chain.id: {"put": "put", "sent": "send", "stamped": "stamp", "paid": "pay"},
        fan.id: {"left": "left", "marked": "marked", "after": "after"},
    }
    for field, step in said.get(kind, {}).items():
        if step in keys and output[field] != f"r-{keys[step][:12]}":
            found.append(f"its {field} is {output[field]}, the effect of {step} has key {keys[step]}")
    return found
