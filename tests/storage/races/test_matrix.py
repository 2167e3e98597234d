"""Every pair of commands that contradict each other: in both orders, and truly at once on two nodes.

`ORBIT_RACES` says how often each pair meets; a SQLite file has one node, a MariaDB has two.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from orbit_server.verify import snapshot, violations
from tests.storage.races import arms, attempts, control, people, waits
from tests.storage.races.race import Outcome, Race, nothing, settle
from tests.storage.races.scene import Case, Command, answer_of
from tests.storage.weave.paper import Paper

TIMES: Final = int(os.environ.get("ORBIT_RACES", "20"))
AHEAD_MS: Final = 3.0
"""At most so far ahead of the other is one of two commands, so that they meet at every place."""
RACES: Final = (*waits.RACES, *control.RACES, *arms.RACES, *attempts.RACES, *people.RACES)

Nodes = tuple[Paper, Paper]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["sqlite", "mariadb"])
async def nodes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Nodes]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('races') / 'orbit.db'}"
        async with Paper(url) as only:
            yield only, only
            await asyncio.to_thread(sound, url)
        return
    mariadb = request.getfixturevalue("mariadb")
    url = mariadb.create_database()
    async with Paper(url) as one, Paper(url) as other:
        yield one, other
        await asyncio.to_thread(sound, url)
    mariadb.drop_database(url)


def sound(url: str) -> None:
    """Nothing that must be impossible is left by any race."""
    with snapshot(url) as conn:
        assert violations(conn) == []


async def made_ready(race: Race, nodes: Nodes) -> Case:
    case = Case(*nodes, {**race.document, "id": f"races.n{RACES.index(race)}"})
    await race.prepare(case)
    return case


async def ended(race: Race, case: Case, answers: tuple[str, str]) -> Outcome:
    await settle(case)
    if race.after is not nothing:
        await race.after(case)
        await settle(case)
    return (*answers, await race.end(case))


async def later(seconds: float, command: Command, case: Case, node: Paper) -> str:
    await asyncio.sleep(seconds)
    return await answer_of(command(case, node))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
async def test_of_two_commands_one_comes_first_and_everything_agrees(race: Race, nodes: Nodes) -> None:
    for node in dict.fromkeys(nodes):
        await node.publish({**race.document, "id": f"races.n{RACES.index(race)}"})
    one_first, other_first = race.outcomes
    case = await made_ready(race, nodes)
    first = await answer_of(race.one(case, case.one))
    second = await answer_of(race.other(case, case.other))
    assert await ended(race, case, (first, second)) == one_first
    case = await made_ready(race, nodes)
    second = await answer_of(race.other(case, case.other))
    first = await answer_of(race.one(case, case.one))
    assert await ended(race, case, (first, second)) == other_first
    chance = random.Random(race.name)
    for _ in range(TIMES):
        case = await made_ready(race, nodes)
        ahead = chance.choice((0.0, 0.0, *[chance.uniform(-AHEAD_MS, AHEAD_MS) / 1000] * 2))
        met = await asyncio.gather(
            later(max(0.0, -ahead), race.one, case, case.one),
            later(max(0.0, ahead), race.other, case, case.other),
        )
        assert await ended(race, case, (met[0], met[1])) in (one_first, other_first)


def test_no_two_rows_have_one_name() -> None:
    names = [race.name for race in RACES]
    assert len(set(names)) == len(names)
