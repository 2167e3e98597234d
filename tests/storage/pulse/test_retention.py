"""Idle rows go, and nothing that somebody still needs goes with them."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import func, select, text

from orbit_server.pulse.limits.weights import SetWeight
from orbit_server.pulse.retention import Walk, clear_idle, walks
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.storage import tables
from tests.storage.pulse.house import SPACE, House

LATER_US = 30 * 24 * 3_600_000_000


async def cleared(house: House) -> int:
    """As a sweep a month later would."""
    at = await house.database.now() + LATER_US
    return (await clear_idle(house.database, at, walks()))[1]


async def count(house: House, name: str) -> int:
    query = select(func.count()).select_from(tables.metadata.tables[name])
    return await house.database.read(lambda conn: int(conn.execute(query).scalar() or 0))


async def done(house: House, **changes: Any) -> None:
    await house.submit(**changes)
    (offer,) = await house.claimed(house.worker())
    await house.report(offer, Said.SUCCEEDED, result=1)


async def test_keys_and_fairness_keys_go_once_nobody_uses_them(house: House) -> None:
    await done(house, concurrency_key="acct:1", fairness_key="shop")
    assert (await clear_idle(house.database, await house.database.now(), walks()))[1] == 0
    assert await cleared(house) == 2
    assert (await count(house, "concurrency_keys"), await count(house, "fair_flows")) == (0, 0)
    await done(house, concurrency_key="acct:1", fairness_key="shop")
    await house.sound()


async def test_a_key_that_is_held_or_waited_for_stays(house: House) -> None:
    for _ in range(2):
        await house.submit(concurrency_key="acct:1")
    await house.claimed(house.worker())
    await cleared(house)
    assert await count(house, "concurrency_keys") == 1
    await house.sound()


async def test_a_share_that_was_set_and_a_place_far_ahead_stay(house: House) -> None:
    order = SetWeight(None, SPACE, "jobs", "heavy", 3, house.by())
    await house.database.committer.submit(order)
    for _ in range(3):
        await house.submit(fairness_key="ahead")
    assert await cleared(house) == 0
    assert await count(house, "fair_flows") == 2


async def test_a_lifted_limit_goes_when_its_last_permit_is_back(house: House) -> None:
    await house.limit(running_max=1)
    await house.limit(None, backlog_max=5)
    await house.submit()
    (offer,) = await house.claimed(house.worker())
    await house.limit(running_max=None)
    assert await cleared(house) == 0
    await house.report(offer, Said.SUCCEEDED, result=1)
    assert await cleared(house) == 1
    assert await count(house, "limits") == 1


async def test_a_walk_takes_bites_and_goes_on_where_it_stopped(house: House) -> None:
    columns = "id, namespace_id, queue_id, class_id, name, held, waiting, last"

    def fill(conn: Any) -> None:
        for number in range(1_500):
            held = int(number % 3 == 0)
            values = f"'{number:032x}', '{SPACE}', '{SPACE}', '{SPACE}', 'k', {held}, 0, 1"
            conn.execute(text(f"INSERT INTO concurrency_keys ({columns}) VALUES ({values})"))

    await house.database.write(fill)
    way = walks()[0]
    at = await house.database.now()
    assert await way.bite(house.database, at) == (1_000, 666)
    assert way.after == f"{999:032x}"
    assert await way.bite(house.database, at) == (500, 334)
    assert way.after == ""
    assert await count(house, "concurrency_keys") == 500


async def test_removing_keys_while_they_are_used_leaves_every_account_right(house: House) -> None:
    workers = [house.worker() for _ in range(2)]
    keys: Walk = walks()[0]
    for turn in range(30):
        at = await house.database.now() + LATER_US
        await asyncio.gather(
            *[house.submit(concurrency_key=f"k:{number}") for number in range(3)],
            keys.bite(house.database, at),
            house.claimed(workers[turn % 2], 3),
            keys.bite(house.database, at),
        )
        await house.sound()
        offers = await house.claimed(workers[turn % 2], 9)
        offers, workers[turn % 2].offers = workers[turn % 2].offers, []
        await asyncio.gather(
            *[house.report(offer, Said.SUCCEEDED, result=turn) for offer in offers],
            keys.bite(house.database, at),
            house.admit(),
        )
        await house.sound()
