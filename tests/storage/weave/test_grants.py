"""Granted budgets on both databases: what was added is what may be spent, and the audit says so."""

from __future__ import annotations

from typing import Any

import orjson

from orbit_sdk.values.canonical import digest
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.storage.commands import CommandKey
from orbit_server.verify import violations
from orbit_server.weave.reviews.grants import GrantStep
from orbit_server.weave.service import send
from tests.documents import document, end, poll, task
from tests.storage.weave.paper import NAMESPACE, Paper


async def grant(paper: Paper, instance: str, step: Any, key: str, **more: Any) -> Any:
    command = GrantStep(
        key=CommandKey(NAMESPACE, "workflow.grant", key, digest([instance, *more.values()])),
        instance_id=instance,
        namespace_id=NAMESPACE,
        step_key=step.step_key,
        expected_revision=step.revision,
        actor="operator",
        reason="a test",
        seed=paper.seed(),
        weave=paper.weave,
        **more,
    )
    return await send(paper.database, paper.weave, command)


def short(doc: dict[str, Any]) -> dict[str, Any]:
    for node in doc["nodes"].values():
        if "retry" in node:
            node["retry"] |= {"backoff_ms": 1, "max_backoff_ms": 2}
        if node["kind"] == "POLL":
            node["every_ms"] = 1
    return doc


async def test_granted_attempts_are_spent_and_no_more(migrated_url: str) -> None:
    tries = 0

    def away(_: Any) -> Told:
        nonlocal tries
        tries += 1
        return Told(Said.RETRYABLE, code="AWAY", effect_unknown=False)

    async with Paper(migrated_url, {"safe": away}) as paper:
        paper.worker()
        await paper.publish(short(document({"a": task("done", "safe"), "done": end()})))
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        spent = tries
        first = await grant(paper, instance, (await paper.steps(instance))["a"], "op", attempts=2)
        step = (await paper.steps(instance))["a"]
        assert await grant(paper, instance, step, "op", attempts=2) == first, (
            "the same operation is one grant"
        )
        assert orjson.loads(step.granted) == [2, 0, 0]
        await paper.conclude(instance, "a", step.revision, "RERUN")
        await paper.until(instance, "NEEDS_REVIEW")
        assert tries == spent + 2
        ((details,),) = await paper.rows("SELECT details FROM audit WHERE action = 'workflow.review.grant'")
        assert orjson.loads(details)["granted"] == {"attempts": 2, "round": 0, "rounds": 0, "time_ms": 0}
        assert await paper.database.read(violations) == []
        await paper.set("DELETE FROM audit WHERE action = 'workflow.review.grant'")
        found = {finding.message for finding in await paper.database.read(violations)}
        assert any("of which 0 are in the audit" in message for message in found)
        assert any(f"spent {tries} of {spent} attempts" in message for message in found)


async def test_granted_rounds_go_on_asking_where_the_last_one_ended(migrated_url: str) -> None:
    def pending(_: Any) -> Told:
        return Told(Said.SUCCEEDED, result={"state": "pending"})

    async with Paper(migrated_url, {"status": pending}) as paper:
        paper.worker()
        await paper.publish(short(document({"ask": poll("done", rounds=2), "done": end({"ref": "ask"})})))
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["ask"]
        await grant(paper, instance, step, "op", rounds=1)
        step = (await paper.steps(instance))["ask"]
        paper.plays["status"] = lambda _: Told(Said.SUCCEEDED, result={"state": "done"})
        await paper.conclude(instance, "ask", step.revision, "RERUN")
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == {"state": "done"}
        asked = await paper.rows("SELECT round FROM tasks WHERE instance_id = :i ORDER BY round", i=instance)
        assert [number for (number,) in asked] == [1, 2, 3]
        assert await paper.database.read(violations) == []
