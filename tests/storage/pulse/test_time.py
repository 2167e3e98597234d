"""Delays, back-off, deadlines and sweeps on real rows."""

from __future__ import annotations

from orbit_server.pulse.sweeps import next_due, sweep_deadlines, sweep_due, sweep_leases
from orbit_server.pulse.tasks.lifecycle import Recovery, Said, TaskState
from orbit_server.pulse.times import PulseTimes
from tests.storage.pulse.house import House

DAY_US = 24 * 3600 * 1_000_000


async def test_a_task_delayed_by_a_month_is_started_once_and_not_before(house: House) -> None:
    task_id = await house.submit(delay_ms=30 * 24 * 3_600_000, recovery=Recovery.CONSERVATIVE)
    worker = house.worker()
    now = await house.database.now()
    for day in (0, 1, 29):
        report = await sweep_due(house.database, now + day * DAY_US, house.times)
        assert report.seen == 0
        assert await house.claimed(worker) == []
    due = await next_due(house.database)
    assert due is not None
    assert due >= now + 29 * DAY_US
    await house.set_task(task_id, due_at=now)
    assert (await house.swept_due()).moved == 1
    await house.claimed(worker)
    assert await house.claimed(house.worker()) == []
    assert [offer.task_id for offer in worker.offers] == [task_id]


async def test_a_sweep_that_comes_too_early_moves_nothing(house: House) -> None:
    """A loop's idea of the time may be ahead; the transaction's own time decides."""
    await house.submit(delay_ms=60_000)
    report = await sweep_due(house.database, await house.database.now() + DAY_US, house.times)
    assert (report.seen, report.moved) == (1, 0)


async def test_backoff_is_stored_once_and_survives_a_restart(house: House) -> None:
    task_id = await house.submit()
    (offer,) = await house.claimed(house.worker())
    await house.report(offer, Said.EXCEPTION, message="no")
    before = await house.task(task_id)
    assert before.state is TaskState.RETRY_WAIT
    again = await house.reopened()
    assert (await again.task(task_id)).due_at == before.due_at
    report = await sweep_due(again.database, (before.due_at or 0) - 1, again.times)
    assert report.seen == 0
    assert (await again.task(task_id)).due_at == before.due_at


async def test_limits_count_from_the_time_a_task_may_start(house: House) -> None:
    task_id = await house.submit(delay_ms=1_000, start_within_ms=500, total_timeout_ms=9_000)
    task = await house.task(task_id)
    due = task.due_at or 0
    assert (task.latest_start_at, task.total_deadline_at) == (due + 500_000, due + 9_000_000)


async def test_a_task_that_nobody_can_run_expires_and_tells(house: House) -> None:
    task_id = await house.submit(start_within_ms=1, instance_id="3" * 32, activation_id="4" * 32)
    now = await house.database.now()
    await house.set_task(task_id, deadline_at=now - 5, latest_start_at=now - 5)
    report = await sweep_deadlines(house.database, now, house.times)
    assert report.moved == 1
    assert (await house.task(task_id)).state is TaskState.EXPIRED
    result = await house.result(task_id)
    assert result is not None
    assert result.error == '{"code":"EXPIRED","message":"no attempt could start in time"}'
    assert (await sweep_deadlines(house.database, now, house.times)).seen == 0


async def test_one_damaged_row_does_not_stop_the_sweep(house: House) -> None:
    times = PulseTimes(sweep_bite=3)
    ids = [await house.submit(delay_ms=1) for _ in range(10)]
    for task_id in ids:
        await house.set_task(task_id, due_at=1)
    await house.set_task(ids[2], state="DAMAGED")
    report = await sweep_due(house.database, await house.database.now(), times)
    assert (report.seen, report.moved, report.failed, report.failed_ids) == (10, 9, 1, (ids[2],))
    states = [(await house.task(task_id)).state for task_id in ids if task_id != ids[2]]
    assert set(states) == {TaskState.READY}


async def test_a_damaged_row_at_the_front_does_not_hold_up_its_queue(house: House) -> None:
    first = await house.submit()
    second = await house.submit()
    await house.set_task(first, recovery="DAMAGED")
    (offer,) = await house.claimed(house.worker(), 2)
    assert offer.task_id == second
    assert await house.claimed(house.worker(), 2) == []


async def test_sweeps_page_past_rows_they_cannot_move(house: House) -> None:
    for _ in range(4):
        task_id = await house.submit()
        (_,) = await house.claimed(house.worker())
        await house.lease_ran_out(task_id, by_ms=2_500)
    at = await house.database.now()
    report = await sweep_leases(house.database, at, PulseTimes(sweep_bite=2, lease_skew_ms=1_000_000))
    assert report.seen == 0
    report = await sweep_leases(
        house.database, at + DAY_US, PulseTimes(sweep_bite=2, lease_skew_ms=1_000_000)
    )
    assert (report.seen, report.moved, report.more) == (4, 0, False)
