from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.errors import NotFound, OrbitError
from orbit_server.bootstrap import KINDS
from orbit_server.storage.database import Database
from orbit_server.storage.migrations import migrate
from orbit_server.weave.definitions.catalog import Catalog
from orbit_server.weave.instances.time import StepDue
from orbit_server.weave.service import companion_factory, post, send, send_all
from orbit_server.weave.state.rows import INSTANCES, STEPS
from orbit_server.weave.state.running import Weave
from orbit_server.weave.sweeps.inbox import sweep_inbox
from orbit_server.weave.sweeps.steps import sweep_advances, sweep_due_steps
from tests.unit.weave.shelves import INSTANCE, SEED, head, step

SLEEP = step("sleep", due_at=1)
"""A due step of a definition that was never stored."""


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    url = f"sqlite:///{tmp_path / 'orbit.db'}"
    migrate(url)
    async with Database(url, kinds=KINDS) as opened:
        yield opened


@pytest.fixture
def weave(database: Database) -> Weave:
    return Weave(Catalog(database))


async def stored(database: Database, **changes: Any) -> None:
    def write(conn: Any) -> None:
        INSTANCES.save(conn, [head(**changes)], [])
        STEPS.save(conn, [SLEEP], [])

    await database.write(write)


async def test_a_definition_that_is_gone_refuses_one_command_and_not_the_others(
    database: Database, weave: Weave
) -> None:
    await stored(database)
    commands = [StepDue(INSTANCE, SLEEP.id, SEED, weave), StepDue("0" * 32, SLEEP.id, SEED, weave)]
    first, second = await send_all(database, weave, commands)
    assert isinstance(first, NotFound)
    assert not isinstance(second, OrbitError)
    assert second.answer is False
    with pytest.raises(NotFound):
        await send(database, weave, commands[0])
    assert (await post(database, weave, commands[1])).replayed is False


async def test_what_cannot_be_sent_to_review_is_logged_and_passed_by(
    database: Database, weave: Weave, caplog: pytest.LogCaptureFixture
) -> None:
    await stored(database, checkpoint=("sleep:next",), advance_due_at=1)
    with caplog.at_level(logging.WARNING):
        full = await sweep_due_steps(database, weave, lambda: SEED, limit=1)
        advances = await sweep_advances(database, weave, lambda: SEED, limit=1)
    assert (full.found, full.moved, full.failed, full.last) == (1, 0, 1, (1, SLEEP.id))
    assert (advances.found, advances.failed, advances.last) == (1, 1, (1, INSTANCE))
    assert "BlockStep" in caplog.text
    beyond = await sweep_due_steps(database, weave, lambda: SEED, after=full.last)
    assert (beyond.found, beyond.last, beyond.next_due_at) == (0, None, None)
    assert (await sweep_advances(database, weave, lambda: SEED, after=advances.last)).found == 0


async def test_a_companion_asks_for_the_report_of_one_task(weave: Weave) -> None:
    command: Any = companion_factory(weave, lambda: SEED)(INSTANCE, "a" * 32)
    assert (command.lane, command.task_id) == (INSTANCE, "a" * 32)


async def test_an_empty_inbox_has_nothing_to_apply(database: Database, weave: Weave) -> None:
    report = await sweep_inbox(database, weave, lambda: SEED, after=(1, "a" * 32))
    assert (report.found, report.applied, report.failed, report.last) == (0, 0, 0, None)
