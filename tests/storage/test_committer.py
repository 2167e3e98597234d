from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orbit_sdk.errors import (
    Conflict,
    FailedPrecondition,
    Gone,
    Internal,
    OrbitError,
    ResourceExhausted,
    Unavailable,
)
from orbit_sdk.values.ids import derive_id
from orbit_server.storage.book import Book
from orbit_server.storage.commands import Done, Missing, Needs, Refused
from orbit_server.storage.database import Database
from orbit_server.storage.settings import StorageSettings
from tests.storage.ledger import (
    COUNTERS,
    KINDS,
    NOTES,
    Act,
    Bump,
    Counter,
    Create,
    cid,
    counter,
    event,
    key,
    missing,
    note,
)

Opener = Callable[..., Any]


async def value(database: Database, name: str) -> int | None:
    """The stored value of a counter, and a proof that no second row of it exists."""
    found = await database.read(
        lambda conn: (
            conn.exec_driver_sql(f"SELECT wake_seq FROM queues WHERE id = '{cid(name)}'").scalars().all()
        )
    )
    assert len(found) <= 1
    return found[0] if found else None


async def rows(database: Database, table: str) -> int:
    return await database.read(
        lambda conn: int(conn.exec_driver_sql(f"SELECT COUNT(*) FROM {table}").scalar_one())
    )


async def test_fifty_equal_requests_at_once_make_one_row_and_get_fifty_equal_answers(
    open_database: Opener,
) -> None:
    database = await open_database()
    answers = await asyncio.gather(*[database.committer.submit(Create("a", key("k"))) for _ in range(50)])
    assert answers == [{"id": cid("a"), "name": "a"}] * 50
    assert await rows(database, "queues") == 1
    assert await rows(database, "idempotency") == 1
    assert database.metrics.replayed == 49


async def test_a_repeated_request_is_answered_from_the_stored_key(open_database: Opener) -> None:
    database = await open_database()
    first = await database.committer.post(Create("a", key("k")))
    again = await database.committer.post(Create("a", key("k")))
    assert (first.replayed, again.replayed) == (False, True)
    assert again.answer == first.answer
    assert again.at == first.at


async def test_one_key_in_two_namespaces_and_for_two_operations_is_four_keys(open_database: Opener) -> None:
    database = await open_database()
    other = derive_id("another namespace")
    keys = [
        key("k"),
        key("k", namespace=other),
        key("k", operation="start"),
        key("k", namespace=other, operation="start"),
    ]
    await asyncio.gather(
        *[database.committer.submit(Create(str(place), own)) for place, own in enumerate(keys)]
    )
    assert await rows(database, "queues") == 4
    assert await rows(database, "idempotency") == 4


async def test_a_key_with_another_meaning_is_a_conflict(open_database: Opener) -> None:
    database = await open_database()
    group = [Create("a", key("k")), Create("b", key("k", digest="d2"))]
    first, second = await asyncio.gather(
        *[database.committer.submit(command) for command in group], return_exceptions=True
    )
    # Both orders are right: on several lanes either may be first.
    assert sorted([type(first), type(second)], key=str) == sorted([dict, Conflict], key=str)
    with pytest.raises(Conflict):
        await database.committer.submit(Create("c", key("k", digest="d3")))
    assert await rows(database, "queues") == 1


async def test_a_refused_request_binds_nothing(open_database: Opener) -> None:
    database = await open_database()
    refusing = [True]
    with pytest.raises(FailedPrecondition):
        await database.committer.submit(Create("a", key("k"), lambda: refusing[0]))
    refusing[0] = False
    other_meaning = key("k", digest="d2")
    assert await database.committer.submit(Create("a", other_meaning, lambda: refusing[0]))


@pytest.mark.parametrize("how", ["answer = NULL", "expires_at = 1"])
async def test_the_key_of_something_purged_is_gone_and_names_it(open_database: Opener, how: str) -> None:
    database = await open_database()
    await database.committer.submit(Create("a", key("k")))
    await database.write(lambda conn: conn.exec_driver_sql(f"UPDATE idempotency SET {how}").rowcount)
    with pytest.raises(Gone) as gone:
        await database.committer.submit(Create("b", key("k")))
    assert gone.value.details[0].reason == cid("a")


async def test_what_waits_while_a_transaction_runs_goes_into_the_next_one(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    results = await asyncio.gather(*[database.committer.submit(Bump("a", str(place))) for place in range(40)])
    assert results == list(range(1, 41))
    assert database.metrics.groups == 1
    assert database.metrics.group_size.total == 40


async def test_a_group_has_at_most_the_set_number_of_commands(open_database: Opener) -> None:
    database = await open_database(lanes=1, group_max=8)
    await asyncio.gather(*[database.committer.submit(Bump("a", str(place))) for place in range(20)])
    assert database.metrics.groups == 3
    assert await value(database, "a") == 20


async def test_a_refusal_leaves_its_neighbours_alone(open_database: Opener) -> None:
    database = await open_database(lanes=1)

    def spoil(book: Book) -> Refused:
        row = book.get(COUNTERS, cid("a"))
        assert row is not None
        book.change(COUNTERS, row, replace(row, wake_seq=999))
        book.insert(NOTES, note("a", "spoilt"))
        book.after_commit("spoilt")
        return Refused(FailedPrecondition("no"))

    hints: list[object] = []
    both = {"counters": (cid("a"),), "notes": (cid("a"),)}
    results = await asyncio.gather(
        database.committer.submit(Bump("a", "1")),
        database.committer.submit(Act("a", spoil, both)),
        database.committer.submit(Bump("a", "2")),
        return_exceptions=True,
    )
    assert results[0] == 1
    assert isinstance(results[1], FailedPrecondition)
    assert results[2] == 2
    assert await value(database, "a") == 2
    assert await rows(database, "payloads") == 2
    assert hints == []


async def test_a_command_that_raises_fails_alone(open_database: Opener) -> None:
    database = await open_database(lanes=1)

    def explode(book: Book) -> Done[int]:
        book.insert(COUNTERS, counter("x"))
        raise ZeroDivisionError

    def refuse(book: Book) -> Done[int]:
        raise FailedPrecondition("raised instead of returned")

    results = await asyncio.gather(
        database.committer.submit(Bump("a", "1")),
        database.committer.submit(Act("x", explode)),
        database.committer.submit(Act("x", refuse)),
        database.committer.submit(Bump("a", "2")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [int, Internal, FailedPrecondition, int]
    assert isinstance(results[1].__cause__, ZeroDivisionError)
    assert await value(database, "x") is None
    assert await value(database, "a") == 2


async def test_a_command_that_cannot_be_stored_fails_alone(open_database: Opener) -> None:
    database = await open_database(lanes=1)

    def wrong_type(book: Book) -> Done[int]:
        book.insert(COUNTERS, replace(counter("x"), wake_seq="not a number"))  # type: ignore[arg-type]
        return Done(1)

    commands = [Bump("a", str(place)) for place in range(6)]
    results = await asyncio.gather(
        *[database.committer.submit(command) for command in commands[:3]],
        database.committer.submit(Act("x", wrong_type)),
        *[database.committer.submit(command) for command in commands[3:]],
        return_exceptions=True,
    )
    assert isinstance(results.pop(3), Internal)
    assert results == [1, 2, 3, 4, 5, 6]
    assert await value(database, "x") is None


async def test_missing_rows_make_the_command_run_again_with_them(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    await database.committer.submit(Bump("b", "1"))
    runs: list[str] = []

    def copy(book: Book) -> Done[int] | Missing:
        runs.append("run")
        other = book.get(COUNTERS, cid("b"))
        assert other is not None
        return Done(other.wake_seq + len(book.members(NOTES, cid("b"))))

    assert await database.committer.submit(Act("a", copy)) == 2
    assert len(runs) == 3
    assert database.metrics.missing == 2


async def test_a_command_that_keeps_missing_rows_is_given_up(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    results = await asyncio.gather(
        database.committer.submit(Act("a", lambda _: missing("counters", cid("a")))),
        database.committer.submit(Act("a", lambda _: missing("no such kind", cid("a")))),
        database.committer.submit(Bump("a", "1")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [Internal, Internal, int]
    assert database.metrics.missing == 7


async def test_more_leads_from_one_kind_to_later_ones(open_database: Opener) -> None:
    database = await open_database()
    await database.committer.submit(Bump("a", "1"))

    def lead(book: Book) -> dict[str, tuple[str, ...]]:
        row = book.get(COUNTERS, cid("a"))
        return {} if row is None else {"notes": (row.id,)}

    command = Act("a", lambda book: Done(len(book.members(NOTES, cid("a")))), lead=lead)
    assert await database.committer.submit(command) == 1
    assert database.metrics.missing == 0


async def test_more_that_names_an_earlier_kind_costs_one_more_run(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    await database.committer.submit(Bump("a", "1"))
    back = {"counters": (cid("a"),)}
    command = Act(
        "a", lambda book: Done(book.get(COUNTERS, cid("a"))), {"notes": (cid("a"),)}, lambda _: back
    )
    row = await database.committer.submit(command)
    assert isinstance(row, Counter)
    assert database.metrics.missing == 1


@pytest.mark.parametrize(
    ("lead", "error"),
    [
        (lambda _: 1 / 0, Internal),
        (lambda book: book.change(COUNTERS, None, None), Internal),
    ],
)
async def test_more_that_raises_fails_its_command_alone(
    open_database: Opener, lead: Any, error: type[OrbitError]
) -> None:
    database = await open_database(lanes=1)
    results = await asyncio.gather(
        database.committer.submit(Act("a", lambda _: Done(1), lead=lead)),
        database.committer.submit(Bump("a", "1")),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [error, int]


async def test_more_may_refuse_or_meet_a_missing_row(open_database: Opener) -> None:
    database = await open_database(lanes=1)

    def refuse(book: Book) -> Any:
        raise FailedPrecondition("no")

    def meet(book: Book) -> Any:
        book.get(COUNTERS, cid("b"))
        return {}

    with pytest.raises(FailedPrecondition):
        await database.committer.submit(Act("a", lambda _: Done(1), lead=refuse))
    assert await database.committer.submit(Act("a", lambda _: Done(1), lead=meet)) == 1


async def test_a_companion_runs_with_its_parent_and_only_falls_away_when_it_cannot(
    open_database: Opener,
) -> None:
    database = await open_database(lanes=1)
    good = Bump("b", "with a")
    raising = Act("b", lambda _: Done(1 // 0))
    refused = Act("b", lambda _: Refused(FailedPrecondition("no")))
    lost = Act("b", lambda book: Done(book.get(COUNTERS, cid("never named"))))
    for place, companion in enumerate([good, raising, refused, lost]):
        assert await database.committer.submit(Bump("a", str(place), companion=companion)) == place + 1
    assert await value(database, "b") == 1
    assert database.metrics.dropped == 3


async def test_a_companion_of_a_refused_command_is_not_run(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    ran: list[int] = []

    class Refusing(Act):
        companion = Act("b", lambda _: ran.append(1) or Done(1))

    with pytest.raises(FailedPrecondition):
        await database.committer.submit(Refusing("a", lambda _: Refused(FailedPrecondition("no"))))
    assert ran == []


async def test_a_companion_leads_to_later_rows_too(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    await database.committer.submit(Bump("b", "1"))
    leading = Act(
        "b", lambda book: Done(book.members(NOTES, cid("b"))), lead=lambda _: {"notes": (cid("b"),)}
    )
    lost = Act("b", lambda _: Done(1), lead=lambda book: book.get(COUNTERS, cid("z")) and {})
    raising = Act("b", lambda _: Done(1), lead=lambda _: 1 // 0)  # type: ignore[arg-type,return-value]
    for place, companion in enumerate([leading, lost, raising]):
        await database.committer.submit(Bump("a", str(place), companion=companion))
    assert database.metrics.dropped == 0


async def test_a_companion_that_has_to_wait_is_no_fault_to_tell_of(
    open_database: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    database = await open_database(lanes=1)

    def waits(_: Book) -> Needs:
        raise Unavailable("a definition is being loaded")

    def breaks(_: Book) -> Needs:
        raise ZeroDivisionError

    for place, lead in enumerate([waits, breaks]):
        caplog.clear()
        companion = Act("b", lambda _: Done(1), lead=lead)
        await database.committer.submit(Bump("a", str(place), companion=companion))
        assert any("failed to say what it needs" in text for text in caplog.messages) is (lead is breaks)


async def test_companions_that_break_the_transaction_are_left_out(open_database: Opener) -> None:
    database = await open_database(lanes=1)

    def wrong_type(book: Book) -> Done[int]:
        book.insert(COUNTERS, replace(counter("x"), wake_seq="not a number"))  # type: ignore[arg-type]
        return Done(1)

    results = await asyncio.gather(
        database.committer.submit(Bump("a", "1", companion=Act("x", wrong_type))),
        database.committer.submit(Bump("a", "2")),
    )
    assert results == [1, 2]
    assert await value(database, "x") is None


async def test_follow_ups_run_in_the_same_group_and_never_harm_their_parent(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    second = Act("a", lambda _: Done(None, [Act("a", lambda _: Done(1 // 0))]))
    assert await database.committer.submit(Bump("a", "1", follow_ups=[second])) == 1
    assert database.metrics.groups == 1
    assert database.metrics.dropped == 1


async def test_endless_follow_ups_are_cut_off(open_database: Opener) -> None:
    database = await open_database(lanes=1)

    def again(book: Book) -> Done[None]:
        return Done(None, [Act("a", again)])

    await database.committer.submit(Act("a", again))
    assert database.metrics.dropped == 1


async def test_a_full_queue_refuses_at_once_and_recovers(open_database: Opener) -> None:
    database = await open_database(lanes=1, queue_max=5)
    posted = [database.committer.post(Bump("a", str(place))) for place in range(8)]
    refused = [future for future in posted if future.done()]
    assert len(refused) == 3
    for future in refused:
        with pytest.raises(ResourceExhausted) as error:
            await future
        assert error.value.retry_after_ms
    background = database.committer.post(Bump("a", "background"), background=True)
    answers = [one.answer for one in await asyncio.gather(*posted[:5])]
    assert answers == sorted(answers)
    # Background work has a lane of its own on MySQL: it may come first.
    assert {*answers, (await background).answer} == {1, 2, 3, 4, 5, 6}
    assert await database.committer.submit(Bump("a", "later")) == 7
    assert database.metrics.queue_full == 3
    assert database.metrics.queued == 0


async def test_background_work_gets_its_share_of_a_full_lane(migrated_sqlite_url: str) -> None:
    order: list[str] = []

    def seen(name: str) -> Act:
        return Act("a", lambda _: order.append(name) or Done(None))

    async with Database(migrated_sqlite_url, kinds=KINDS, settings=StorageSettings(group_max=4)) as database:
        posted = [database.committer.post(seen("request")) for _ in range(8)]
        posted += [database.committer.post(seen("background"), background=True) for _ in range(2)]
        await asyncio.gather(*posted)
    assert order[:4] == ["request", "request", "background", "background"]


async def test_a_cancelled_caller_does_not_stop_the_command(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    caller = asyncio.create_task(database.committer.submit(Bump("a", "1")))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await database.committer.submit(Bump("a", "2")) == 2


async def test_cancelling_callers_at_random_loses_nothing(open_database: Opener) -> None:
    database = await open_database()
    callers = [asyncio.create_task(database.committer.submit(Bump("a", str(place)))) for place in range(60)]
    for place, caller in enumerate(callers):
        if place % 3 == 0:
            await asyncio.sleep(0)
            caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    assert await database.committer.submit(Bump("a", "last")) == 61


async def test_closing_finishes_what_was_accepted_and_refuses_the_rest(open_database: Opener) -> None:
    database = await open_database()
    accepted = [database.committer.post(Bump("a", str(place))) for place in range(10)]
    await database.committer.close()
    assert [future.result().answer for future in accepted] == list(range(1, 11))
    with pytest.raises(Unavailable):
        await database.committer.submit(Bump("a", "late"))
    with pytest.raises(Unavailable):
        await database.write(lambda _: None)


async def test_hints_are_given_after_the_commit_and_never_harm_it(open_database: Opener) -> None:
    given: list[object] = []

    def take(hints: Any) -> None:
        given.extend(hints)
        raise RuntimeError("a loop is broken")

    database = await open_database(on_commit=take)
    assert await database.committer.submit(Create("a", key("k")))
    await database.committer.submit(Create("a", key("k")))
    assert given == [("created", "a")]


async def test_events_are_stored_with_the_change(open_database: Opener) -> None:
    database = await open_database()

    def act(book: Book) -> Done[None]:
        book.emit(event("a", book.now))
        return Done(None)

    await database.committer.submit(Act("a", act))
    assert await rows(database, "events") == 1


async def test_now_never_goes_back_behind_a_row_and_last_is_written_back(open_database: Opener) -> None:
    database = await open_database(lanes=1)
    future = await database.now() + 3_600_000_000
    await database.committer.submit(Bump("a", "1"))
    await database.write(lambda conn: conn.exec_driver_sql(f"UPDATE queues SET last = {future}").rowcount)
    seen: list[int] = []

    def look(book: Book) -> Done[None]:
        seen.append(book.now)
        return Done(None)

    def move(book: Book) -> Done[None]:
        seen.append(book.now)
        for name in ("a", "b"):
            row = book.get(COUNTERS, cid(name)) or book.insert(COUNTERS, counter(name))
            book.change(COUNTERS, row, replace(row, revision=row.revision + 1))
        return Done(None)

    both = {"counters": (cid("a"), cid("b"))}
    await asyncio.gather(
        database.committer.submit(Act("b", look)),
        database.committer.submit(Act("a", move, both)),
        database.committer.submit(Act("b", look)),
    )
    assert seen[0] < future
    assert seen[1] == future
    assert seen[2] == future, "b was changed at that instant by the same group"
    stored = await database.read(
        lambda conn: conn.exec_driver_sql("SELECT DISTINCT last FROM queues").scalars().all()
    )
    assert stored == [future]


async def test_a_command_that_does_not_know_its_needs_is_refused_before_it_waits(
    open_database: Opener,
) -> None:
    database = await open_database()

    class Lost(Act):
        def needs(self) -> Any:
            raise ZeroDivisionError

    class Wrong(Act):
        def needs(self) -> Any:
            raise FailedPrecondition("no")

    for command, error in [
        (Lost("a", lambda _: Done(1)), Internal),
        (Wrong("a", lambda _: Done(1)), FailedPrecondition),
        (Act("a", lambda _: Done(1), {"no such kind": ("x",)}), Internal),
    ]:
        with pytest.raises(error):
            await database.committer.submit(command)
    assert database.metrics.queued == 0


async def test_two_kinds_of_one_name_are_refused(migrated_sqlite_url: str) -> None:
    with pytest.raises(ValueError, match="one name"):
        Database(migrated_sqlite_url, kinds=[COUNTERS, COUNTERS])
