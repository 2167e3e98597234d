"""Two people at two servers over one MariaDB want things that exclude each other, in the same moment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from orbit_sdk.client import OrbitClient
from orbit_sdk.errors import OrbitError
from tests.crash.house import House, house
from tests.documents import document, end, wait

T = TypeVar("T")
Two = tuple[House, OrbitClient, OrbitClient]
TIMES = 10
ASKING = document({"ask": wait("done"), "done": end({"ref": "ask"})})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(mariadb: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Two]:
    """Two server processes, and a client of each; sound at the end."""
    url = mariadb.create_database()
    with house(url, tmp_path_factory.mktemp("at-once")) as built:
        for _ in range(2):
            built.server()
        async with AsyncExitStack() as stack:
            one, other = [await stack.enter_async_context(built.client(each.url)) for each in built.servers]
            await one.definitions.publish(ASKING, current=True)
            yield built, one, other
        built.check()
    mariadb.drop_database(url)


async def said(work: Awaitable[T]) -> T | str:
    """The answer, or the code of the refusal."""
    try:
        return await work
    except OrbitError as error:
        return error.code.value


async def waiting(client: OrbitClient) -> tuple[str, str]:
    """A new workflow and its open wait."""
    started = await client.workflows.start(ASKING["id"], {})
    (found,) = [each async for each in client.waits.list(workflow_id=started.id)]
    return started.id, found.id


@pytest.mark.asyncio(loop_scope="module")
async def test_two_answers_to_one_wait(two: Two) -> None:
    _, one, other = two
    for _ in range(TIMES):
        workflow_id, wait_id = await waiting(one)
        answers = await asyncio.gather(
            said(one.waits.answer(wait_id, "yes")), said(other.waits.answer(wait_id, "no"))
        )
        refused = [each for each in answers if isinstance(each, str)]
        assert refused in (["CONFLICT"], ["FAILED_PRECONDITION"])
        ended = await other.workflows.get(workflow_id)
        assert (ended.state, ended.output) == ("SUCCEEDED", "no" if isinstance(answers[0], str) else "yes")


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_and_a_cancel(two: Two) -> None:
    _, one, other = two
    for _ in range(TIMES):
        workflow_id, wait_id = await waiting(one)
        answer, cancelled = await asyncio.gather(
            said(one.waits.answer(wait_id, "yes")), said(other.workflows.cancel(workflow_id, reason="r"))
        )
        state = (await one.workflows.get(workflow_id)).state
        assert (isinstance(answer, str), isinstance(cancelled, str), state) in (
            (False, True, "SUCCEEDED"),
            (True, False, "CANCELLED"),
        )


@pytest.mark.asyncio(loop_scope="module")
async def test_a_pause_and_a_cancel_of_what_both_have_seen(two: Two) -> None:
    _, one, other = two
    for _ in range(TIMES):
        workflow_id, _ = await waiting(one)
        answers = await asyncio.gather(
            said(one.workflows.pause(workflow_id, reason="r", expected_control_version=1)),
            said(other.workflows.cancel(workflow_id, reason="r", expected_control_version=1)),
        )
        assert [isinstance(each, str) for each in answers].count(True) == 1
        found = await one.workflows.get(workflow_id)
        assert found.control_version == 2
        assert found.paused is not (found.state == "CANCELLED")


@pytest.mark.asyncio(loop_scope="module")
async def test_two_starts_under_one_key(two: Two) -> None:
    _, one, other = two
    for number in range(TIMES):
        starts = [
            said(client.workflows.start(ASKING["id"], given, idempotency_key=f"start-{number}"))
            for client, given in ((one, {}), (other, {}), (one, {"other": 1}))
        ]
        answers = await asyncio.gather(*starts)
        made = {each.id for each in answers if not isinstance(each, str)}
        assert len(made) == 1, answers
        assert "CONFLICT" in answers


@pytest.mark.asyncio(loop_scope="module")
async def test_two_publications_of_one_version(two: Two) -> None:
    _, one, other = two
    for number in range(TIMES):
        name = f"at.once{number}"
        both = [{**ASKING, "id": name}, {**document({"done": end()}), "id": name}]
        answers = await asyncio.gather(
            *[said(client.definitions.publish(each)) for client, each in zip((one, other), both, strict=True)]
        )
        assert Counter(isinstance(each, str) for each in answers) == {True: 1, False: 1}
        assert "CONFLICT" in answers
