"""Servers that die at any moment, databases that go away, connections that break around a COMMIT."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from orbit_sdk.client import OrbitClient
from orbit_sdk.errors import OrbitError
from orbit_sdk.values.canonical import digest
from orbit_server.bootstrap import open_database
from orbit_server.clock import SystemClock, new_seed
from orbit_server.pulse.tasks.attempts import Held, RecordResult
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told, report_of
from orbit_server.settings import Settings
from orbit_server.storage.commands import CommandKey
from orbit_server.weave.definitions.catalog import Catalog
from orbit_server.weave.instances.start import StartWorkflow
from orbit_server.weave.service import send
from orbit_server.weave.state.running import Weave
from tests.crash.channel import Ledger
from tests.crash.flows import GO, Order, Word, chain, fan
from tests.crash.house import House, house
from tests.crash.people import Reviewer, ended, publish, wrongs_of_effects
from tests.crash.proxy import Cut, proxy
from tests.databases import MariaDb
from tests.server import until


@pytest.fixture
def at(database_url: str, tmp_path: Path) -> Iterator[House]:
    with house(database_url, tmp_path, Ledger(linger_ms=0)) as built:
        yield built


# --- killed between a commit and what should follow it -----------------------------------------------------


async def store_unheard(at: House, attempt: tuple[Any, ...], result: Any) -> str:
    """Store a result, and start a workflow, as a server would that dies right after the commit."""
    task_id, attempt_id, generation, namespace_id, instance_id = attempt
    settings = Settings(database=at.url)
    async with open_database(settings) as database:
        held = Held(task_id, attempt_id, generation)
        report = report_of(Told(Said.SUCCEEDED, result=result))
        await database.committer.submit(RecordResult(namespace_id, held, report, instance_id, None))
        seed = new_seed(SystemClock())
        given = {"name": "unheard", "outcome": "fine"}
        start = StartWorkflow(
            key=CommandKey(namespace_id, "workflow.start", "unheard", digest(given)),
            instance_id=seed.nth(999_999),
            namespace_id=namespace_id,
            definition_id=chain.id,
            version=None,
            input=given,
            started_by="a dead server",
            seed=seed,
            weave=Weave(Catalog(database)),
        )
        return str((await send(database, start.weave, start))["id"])


async def test_what_was_stored_but_told_to_nobody_is_found_by_the_next_server(at: House) -> None:
    at.ledger.hold.add("put")
    server = at.server()
    worker = at.worker()
    async with at.client() as client:
        await publish(client)
        handle = await client.start(chain, Order(name="heard"))
        await until(lambda: at.ledger.count() == 1)
        server.kill()
        worker.kill()
        at.ledger.let_go("put")
        (attempt,) = at.rows(
            "SELECT a.task_id, a.id, a.generation, t.namespace_id, t.instance_id FROM attempts a"
            " JOIN tasks t ON t.id = a.task_id WHERE a.state = 'RUNNING' AND t.step_key = 'put'"
        )
        unheard = await store_unheard(at, attempt, {"receipt": "r-1"})
        assert at.rows("SELECT state FROM inbox WHERE task_id = :id", id=attempt[0]) == [("PENDING",)]
        server.restart()
        worker.start()
        found = await ended(client, [handle.id, unheard], 40)
    assert [one.state for one in found.values()] == ["SUCCEEDED", "SUCCEEDED"]
    assert found[handle.id].output["put"] == "r-1"
    assert len([one for one in at.ledger.of_step("put") if one.workflow == handle.id]) == 1
    at.check()


# --- clients that keep their own books ---------------------------------------------------------------------


@dataclass
class Books:
    """What was acknowledged: the key of every request, and the id that it was answered with."""

    started: dict[str, str] = field(default_factory=dict)
    submitted: dict[str, str] = field(default_factory=dict)
    signalled: dict[str, str] = field(default_factory=dict)


async def keep_asking(client: OrbitClient, books: Books, name: str, over: asyncio.Event) -> None:
    number = 0
    while not over.is_set():
        number += 1
        key = f"{name}-{number}"
        handle = await client.start(fan, Order(name=key), idempotency_key=key)
        books.started[key] = handle.id
        receipt = await handle.send(GO, Word(text="go"), match=key, idempotency_key=f"signal-{key}")
        books.signalled[key] = receipt.id
        task = {"queue": "nobody", "handler": "storm.put", "handler_version": 1, "parameters": {"name": key}}
        books.submitted[key] = (await client.tasks.submit(task, idempotency_key=key)).id


async def test_no_acknowledged_request_is_lost_and_no_repeated_one_counts_twice(at: House) -> None:
    server = at.server()
    chance = random.Random(3)
    books, over = Books(), asyncio.Event()
    async with at.client() as client:
        await publish(client)
        asking = [asyncio.create_task(keep_asking(client, books, f"c{n}", over)) for n in range(6)]
        for _ in range(6):
            seen = len(books.submitted) + chance.randint(3, 12)
            await until(lambda seen=seen: len(books.submitted) >= seen)
            await asyncio.sleep(chance.random() * 0.03)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.restart)
        over.set()
        await asyncio.gather(*asking)
        for key, workflow_id in list(books.started.items())[-20:]:
            assert (await client.start(fan, Order(name=key), idempotency_key=key)).id == workflow_id
    assert {one for (one,) in at.rows("SELECT id FROM instances")} == set(books.started.values())
    assert {one for (one,) in at.rows("SELECT id FROM signals")} == set(books.signalled.values())
    standalone = at.rows("SELECT id FROM tasks WHERE instance_id IS NULL")
    assert {one for (one,) in standalone} == set(books.submitted.values())
    at.check()


async def test_fifty_equal_submits_through_two_servers_make_one_task(
    mariadb_url: str, tmp_path: Path
) -> None:
    with house(mariadb_url, tmp_path) as at:
        at.server()
        at.server()
        task = {"queue": "nobody", "handler": "storm.put", "handler_version": 1, "parameters": {"name": "x"}}
        async with at.client() as one, at.client(at.servers[1].url) as other:
            for turn in range(3):
                found = await asyncio.gather(
                    *[
                        client.tasks.submit(task, idempotency_key=f"k{turn}")
                        for client in (one, other)
                        for _ in range(25)
                    ]
                )
                assert len({answer.id for answer in found}) == 1
        assert at.rows("SELECT COUNT(*) FROM tasks") == [(3,)]
        at.check()


# --- the database ------------------------------------------------------------------------------------------


async def ready(url: str) -> bool:
    async with httpx.AsyncClient(base_url=url, timeout=5) as http:
        return (await http.get("/readyz")).status_code == 200


async def test_a_database_that_is_killed_and_comes_back_needs_no_restart_of_anything(
    new_mariadb: Callable[..., MariaDb], tmp_path: Path
) -> None:
    database = new_mariadb()
    with house(database.create_database(), tmp_path, Ledger(seed=5)) as at:
        at.server()
        at.worker()
        async with at.client() as client:
            await publish(client)
            reviewing = asyncio.create_task(Reviewer(client, at.ledger).run())
            ids = [(await client.start(chain, Order(name=f"before-{n}"))).id for n in range(8)]
            await until(lambda: at.ledger.count() >= 4)
            await asyncio.to_thread(database.kill)
            starting = [
                asyncio.create_task(client.start(chain, Order(name=f"while-{n}"), idempotency_key=f"w{n}"))
                for n in range(4)
            ]
            await until(lambda: _not(ready(at.servers[0].url)), 60)
            await asyncio.to_thread(database.start)
            await until(lambda: ready(at.servers[0].url), 60)
            ids += [(await start).id for start in starting]
            found = await ended(client, ids, 90)
            reviewing.cancel()
            await asyncio.gather(reviewing, return_exceptions=True)
        assert [one.state for one in found.values()] == ["SUCCEEDED"] * 12
        assert not wrongs_of_effects(at.ledger)
        at.check()


async def _not(asked: Any) -> bool:
    return not await asked


@pytest.mark.parametrize("how", list(Cut))
async def test_a_connection_lost_around_a_commit_gives_one_row_and_one_answer(
    mariadb_url: str, mariadb: MariaDb, tmp_path: Path, how: Cut
) -> None:
    """Whether the COMMIT arrived or not: the caller gets the same answer as ever, under the same key."""
    with ExitStack() as stack:
        at = stack.enter_context(house(mariadb_url, tmp_path))
        between = stack.enter_context(proxy(("127.0.0.1", mariadb.port)))
        at.server("--lanes=1", url=mariadb_url.replace(f":{mariadb.port}/", f":{between.port}/"))
        async with at.client() as client:

            async def cut(work: Any) -> Any:
                before = between.commits_cut
                between.cut_next_commit(how)
                answer = await work
                await until(lambda: between.commits_cut > before)
                return answer

            document = fan.compile().definition.to_json()
            await cut(client.definitions.publish(document, current=True))
            await client.definitions.publish(document, current=True)
            started = set()
            for n in range(5):
                handle = await cut(client.start(fan, Order(name=f"o{n}"), idempotency_key=f"o{n}"))
                again = await client.start(fan, Order(name=f"o{n}"), idempotency_key=f"o{n}")
                assert handle.id == again.id
                first = await cut(
                    handle.send(GO, Word(text="go"), match=f"o{n}", idempotency_key=f"signal{n}")
                )
                second = await handle.send(GO, Word(text="go"), match=f"o{n}", idempotency_key=f"signal{n}")
                assert first.id == second.id
                started.add(handle.id)
            task = {
                "queue": "q",
                "handler": "storm.put",
                "handler_version": 1,
                "parameters": {"name": "x"},
            }
            submitted = await cut(client.tasks.submit(task, idempotency_key="t"))
            assert (await client.tasks.submit(task, idempotency_key="t")).id == submitted.id
        assert {one for (one,) in at.rows("SELECT id FROM instances")} == started
        assert at.rows("SELECT COUNT(*) FROM signals") == [(5,)]
        assert at.rows("SELECT COUNT(*) FROM tasks WHERE instance_id IS NULL") == [(1,)]
        at.check()


async def test_a_database_connection_that_stalls_is_given_up_and_nothing_is_lost(
    mariadb_url: str, mariadb: MariaDb, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        at = stack.enter_context(house(mariadb_url, tmp_path))
        between = stack.enter_context(proxy(("127.0.0.1", mariadb.port)))
        at.server(url=mariadb_url.replace(f":{mariadb.port}/", f":{between.port}/"))
        at.worker()
        async with at.client() as client:
            await publish(client)
            ids = [(await client.start(chain, Order(name=f"o{n}"))).id for n in range(4)]
            reviewing = asyncio.create_task(Reviewer(client, at.ledger).run())
            for _ in range(3):
                between.stall()
                await asyncio.sleep(0.5)
                between.flow()
                between.cut_all()
                await asyncio.sleep(0.2)
            found = await ended(client, ids, 60)
            reviewing.cancel()
            await asyncio.gather(reviewing, return_exceptions=True)
        assert [one.state for one in found.values()] == ["SUCCEEDED"] * 4
        assert not wrongs_of_effects(at.ledger)
        at.check()


# --- bad input to a real server ----------------------------------------------------------------------------


async def test_an_oversize_body_is_refused_and_harms_nobody(sqlite_url: str, tmp_path: Path) -> None:
    with house(sqlite_url, tmp_path) as at:
        server = at.server()
        async with at.client() as client:
            await publish(client)
            huge = {"definition_id": chain.id, "input": {"name": "x" * 3_000_000}}
            async with httpx.AsyncClient(base_url=server.url, headers=server.headers) as http:
                # A server that stops reading may be heard as a reset before its answer is.
                with suppress(httpx.TransportError):
                    answer = await http.post("/v1/workflows", json=huge, headers={"Idempotency-Key": "k"})
                    assert answer.status_code == 413
                    assert answer.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"
            with pytest.raises(OrbitError):
                await client.workflows.start(chain.id, {"name": 5}, idempotency_key="k")
            handle = await client.start(chain, Order(name="x"), idempotency_key="k")
        assert at.rows("SELECT id FROM instances") == [(handle.id,)]
        at.check()
