"""An outage put in order by bulks, while the servers that apply them are killed.

`ORBIT_STORM_REVIEWS` sets how many workflows are in review (40 by default; 300 makes a real outage of it).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from orbit_sdk.client import OrbitClient
from orbit_sdk.protocol.bulk import BulkAction, BulkFilter, Probes, ReviewSteps
from tests.crash.channel import Ledger
from tests.crash.house import House, house
from tests.crash.outage import Payment, payment
from tests.server import new_token, until

REVIEWS = int(os.environ.get("ORBIT_STORM_REVIEWS", "40"))
SECONDS = 1.5
"""How long applying takes at least, so that kills fall into it."""
ILL = BulkFilter(definition_id="outage.payment", step_key="pay", review_class="UNKNOWN")


@pytest.fixture
def at(database_url: str, tmp_path: Path) -> Iterator[House]:
    """Two servers where the database allows it, and a worker whose bank is away."""
    with house(database_url, tmp_path, Ledger(linger_ms=0)) as built:
        built.other_token = new_token(database_url)
        for _ in range(1 if database_url.startswith("sqlite") else 2):
            built.server()
        built.worker(module="tests.crash.outage", queues=("bank",))
        yield built


async def fall_ill(client: OrbitClient) -> None:
    """Start the payments, and wait until each is in review."""
    await client.definitions.publish(payment.compile().definition.to_json(), current=True)
    for number in range(REVIEWS):
        order = Payment(name=f"p-{number}{'!' * (number % 2)}")
        await client.start(payment, order, business_key=order.name, idempotency_key=f"start-{number}")

    async def all_ill() -> bool:
        groups = (await client.reviews.stuck()).items
        return sum(group.count for group in groups) == REVIEWS

    await until(all_ill, 120)


async def planned(client: OrbitClient, code: str) -> str:
    action = ReviewSteps(kind="workflow.review", verdict="FAILED", code=code, basis="ACCEPTED_RISK")
    made = await client.bulk.plan(action, ILL, reason="outage of the bank")
    plan = await client.bulk.wait(made.id)
    assert (plan.state, plan.allowed) == ("PLANNED", REVIEWS)
    return plan.id


@pytest.mark.timeout(300)
async def test_two_operators_put_an_outage_in_order_while_a_server_is_killed_and_each_review_is_decided_once(
    at: House,
) -> None:
    first = at.servers[0]
    last = at.servers[-1]
    async with at.client(first.url) as one, at.client(last.url) as other:
        await fall_ill(one)
        bulks = [await planned(one, "FIRST"), await planned(other, "SECOND")]
        for client, bulk_id in zip((one, other), bulks, strict=True):
            await client.bulk.apply(bulk_id, per_second=REVIEWS / SECONDS)

        async def under_way() -> bool:
            return (await other.bulk.get(bulks[0])).applied >= REVIEWS // 10

        await until(under_way)
        await asyncio.to_thread(first.kill)
        if first is last:
            await asyncio.to_thread(first.restart)
        ended = [await other.bulk.wait(bulk_id) for bulk_id in bulks]
        assert [bulk.state for bulk in ended] == ["DONE", "DONE"]
        results: dict[str, Counter[str]] = {}
        for bulk_id in bulks:
            async for item in other.bulk.items(bulk_id):
                results.setdefault(item.workflow_id or "", Counter())[item.result or ""] += 1
    assert len(results) == REVIEWS
    once = Counter({"APPLIED": 1, "SKIPPED_CHANGED": 1})
    assert [counted for counted in results.values() if counted != once] == []
    assert sum(bulk.applied for bulk in ended) == REVIEWS
    rows = at.rows("SELECT details FROM audit WHERE action = 'workflow.review.failed'")
    assert len(rows) == REVIEWS, "one audit row for each"
    assert all(any(bulk_id in details for bulk_id in bulks) for (details,) in rows)
    at.check()


async def begun(client: OrbitClient, action: BulkAction) -> tuple[str, int]:
    """Plan and begin; gives the bulk and how many items its plan allows."""
    made = await client.bulk.plan(action, ILL, reason="the bank is back")
    plan = await client.bulk.wait(made.id)
    await client.bulk.apply(plan.id, per_second=REVIEWS / SECONDS)
    return plan.id, plan.allowed


@pytest.mark.timeout(300)
async def test_two_operators_probe_an_outage_at_once_and_each_payment_takes_the_truth_that_was_found(
    at: House,
) -> None:
    paid = REVIEWS // 2
    yes = ReviewSteps(kind="workflow.review", verdict="SUCCEEDED", basis="PROVEN", adopt=True)
    no = ReviewSteps(kind="workflow.review", verdict="FAILED", basis="PROVEN", adopt=True, code="NOT_PAID")
    async with at.client() as one, at.client(at.servers[-1].url, at.other_token) as other:
        await fall_ill(one)
        operators = (one, other)
        probes = await asyncio.gather(*[begun(each, Probes(kind="workflow.probe")) for each in operators])
        assert [allowed for _, allowed in probes] == [REVIEWS, REVIEWS]
        for bulk_id, _ in probes:
            assert (await one.bulk.wait(bulk_id)).state == "DONE"
        open_probes = "SELECT COUNT(*) FROM tasks WHERE probe_of IS NOT NULL AND settled_at IS NULL"
        await until(lambda: at.rows(open_probes) == [(0,)], 120)
        assert sum(group.count for group in (await one.reviews.stuck()).items) == REVIEWS, (
            "nothing is decided"
        )
        decisions = await asyncio.gather(*[begun(each, action) for each in operators for action in (yes, no)])
        bulks = {bulk_id: await one.bulk.wait(bulk_id) for bulk_id, _ in decisions}
        assert {bulk.state for bulk in bulks.values()} == {"DONE"}
        assert sum(bulk.applied for bulk in bulks.values()) == REVIEWS
        assert [bulk.failed for bulk in bulks.values()] == [0, 0, 0, 0]
        assert (await one.reviews.stuck()).items == []
    ends = at.rows("SELECT state, COUNT(*) FROM instances GROUP BY state ORDER BY state")
    assert ends == [("FAILED", REVIEWS - paid), ("SUCCEEDED", paid)]
    told = at.rows("SELECT subject_id, action, details FROM audit WHERE action LIKE 'workflow.review.%'")
    decided = [row for row in told if row[1] in ("workflow.review.succeeded", "workflow.review.failed")]
    assert len({step for step, *_ in decided}) == len(decided) == REVIEWS, "one audit row for each"
    own = "SELECT e.id, s.id, e.kind FROM evidence e JOIN steps s ON s.task_id = e.task_id"
    found = {evidence_id: (step_id, kind) for evidence_id, step_id, kind in at.rows(own)}
    kinds = {
        "workflow.review.succeeded": "PROBE_HAPPENED",
        "workflow.review.failed": "PROBE_CANNOT_HAPPEN_ANY_MORE",
    }
    for step_id, action, details in decided:
        said = json.loads(details)
        assert said["bulk_id"] in bulks
        assert found[said["adopted"]["evidence_id"]] == (step_id, kinds[action]), "each took its own truth"
    assert len(told) - len(decided) == 2 * REVIEWS, "and one for each question"
    assert at.ledger.count() == paid, "nobody was paid twice"
    at.check()
