"""The small parts of a worker."""

from __future__ import annotations

import random
import threading

import pytest

import orbit_sdk.handlers as orbit
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers import TaskContext
from orbit_sdk.protocol.worker import ERROR_TEXT_MAX, OfferItem
from orbit_sdk.worker.backoff import Backoff
from orbit_sdk.worker.crew import Crew
from orbit_sdk.worker.outcomes import of_exception, of_return
from orbit_sdk.worker.settings import WorkerSettings, socket_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:7400", "ws://127.0.0.1:7400/v1/worker"),
        ("https://orbit.example/base/", "wss://orbit.example/base/v1/worker"),
        ("wss://orbit.example/v1/worker", "wss://orbit.example/v1/worker"),
    ],
)
def test_the_address_of_the_socket_follows_from_that_of_the_server(url: str, expected: str) -> None:
    assert socket_url(url) == expected


@pytest.mark.parametrize("url", ["", "orbit.example", "ftp://orbit.example", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="url"):
        socket_url(url)


def test_a_token_may_be_asked_for_each_time() -> None:
    tokens = iter(["one", "two"])
    settings = WorkerSettings("http://h", lambda: next(tokens))
    assert [settings.current_token, settings.current_token] == ["one", "two"]


def test_waits_are_spread_below_a_ceiling_that_doubles_up_to_a_limit() -> None:
    ceiling = Backoff(1_000, 15_000, lambda: 1.0)
    assert [ceiling.next_ms() for _ in range(6)] == [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]
    ceiling.reset()
    assert ceiling.next_ms() == 1_000


def test_a_thousand_workers_that_lose_their_server_do_not_return_together() -> None:
    chance = random.Random(7)
    waits = sorted(Backoff(1_000, 15_000, chance.random).next_ms() for _ in range(1_000))
    assert waits[0] < 20
    assert waits[-1] > 980
    assert max(sum(low <= wait < low + 100 for wait in waits) for low in range(0, 1_000, 100)) < 150


def test_a_crew_runs_as_many_jobs_at_once_as_it_has_threads_and_reuses_them() -> None:
    crew, gate, entered, names = Crew(3), threading.Event(), threading.Semaphore(0), set()

    def job() -> None:
        names.add(threading.current_thread().name)
        entered.release()
        gate.wait(10)

    for _ in range(6):
        crew.submit(job)
    for _ in range(3):
        assert entered.acquire(timeout=10)
    assert not entered.acquire(blocking=False)
    gate.set()
    for _ in range(3):
        assert entered.acquire(timeout=10)
    assert len(names) == 3
    crew.close()


@orbit.handler("t.text", version=1)
def text(ctx: TaskContext) -> str:
    return ""


OFFER = OfferItem(
    attempt_id="a" * 32, task_id="b" * 32, generation=1, attempt_no=1, queue="q", handler="t.text",
    handler_version=1, recovery="CONSERVATIVE", lease_ms=1, limit_ms=1, effect_key="e",
)  # fmt: skip


def test_texts_of_errors_are_bounded_and_can_be_stored() -> None:
    result = of_exception(text, OFFER, ValueError("\ud800\0" + "x" * 10_000))
    assert result.message is not None
    assert len(result.message) == ERROR_TEXT_MAX
    assert result.message.startswith("ValueError: ??x")


def test_details_that_are_no_json_are_left_out() -> None:
    error = orbit.Final("CLOSED", "no", details={"at": object()})  # type: ignore[dict-item]
    result = of_exception(text, OFFER, error)
    assert (result.outcome, result.code) == ("FINAL", "CLOSED")
    assert "left_out" in result.details


def test_a_retry_of_a_read_only_handler_claims_no_effect() -> None:
    @orbit.handler("t.read", version=1, recovery=orbit.Recovery.READ_ONLY)
    def read(ctx: TaskContext) -> str:
        return ""

    assert of_exception(read, OFFER, orbit.Retryable("later")).effect == "NONE"
    assert of_exception(text, OFFER, orbit.Retryable("later")).effect == "UNKNOWN"
    assert of_exception(text, OFFER, orbit.Retryable("later", effect=orbit.Effect.NONE)).effect == "NONE"


def test_a_result_at_the_limit_passes_and_one_above_does_not() -> None:
    assert of_return(text, OFFER, "x" * (256 * 1024 - 2)).outcome == "SUCCEEDED"
    too_large = of_return(text, OFFER, "x" * (256 * 1024 - 1))
    assert (too_large.outcome, too_large.size) == ("INVALID_RESULT", 256 * 1024 + 1)
