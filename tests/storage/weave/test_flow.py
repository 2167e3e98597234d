from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from orbit_sdk.errors import Conflict, FailedPrecondition, InvalidArgument, NotFound
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.pulse.tasks.reports import Told
from orbit_server.weave.control.commands import Action
from tests.documents import document, end, task, wait
from tests.server import until
from tests.storage.weave.paper import Paper, succeeds

ref = {"ref": "input"}


def chain() -> dict[str, Any]:
    return document(
        {
            "first": task("second", "safe", value=ref),
            "second": task("third", "safe", value={"ref": "first"}),
            "third": task("done", "safe", value={"ref": "second"}),
            "done": end({"object": {"out": {"ref": "third"}, "first": {"ref": "first"}}}),
        }
    )


async def test_a_chain_runs_to_its_end_and_hands_values_on(database_url: str) -> None:
    def add(offer: Any) -> Told:
        return Told(Said.SUCCEEDED, result=orjson.loads(offer.parameters)["value"] + 1)

    async with Paper(database_url, {"safe": add}) as paper:
        paper.worker()
        await paper.publish(chain())
        instance = await paper.start(1)
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == {"out": 4, "first": 2}
        assert {key: row.state for key, row in (await paper.steps(instance)).items()} == {
            "first": "COMPLETED",
            "second": "COMPLETED",
            "third": "COMPLETED",
            "done": "COMPLETED",
        }


async def test_arms_run_side_by_side_and_the_join_goes_on_once(database_url: str) -> None:
    flow = document(
        {
            "fork": {"kind": "PARALLEL", "arms": {"left": "left", "right": "right"}, "join": "meet"}
            | {"on_arm_failure": "STOP_OTHERS"},
            "left": task("meet", "safe", value={"const": "l"}),
            "right": task("meet", "safe", value={"const": "r"}),
            "meet": {"kind": "JOIN", "next": "after"},
            "after": task("done", "safe", value={"array": [{"ref": "left"}, {"ref": "right"}]}),
            "done": end({"ref": "after"}),
        }
    )

    def echo(offer: Any) -> Told:
        return Told(Said.SUCCEEDED, result=orjson.loads(offer.parameters)["value"])

    async with Paper(database_url, {"safe": echo}) as paper:
        paper.worker()
        await paper.publish(flow)
        started = await asyncio.gather(*(paper.start({}) for _ in range(20)))
        for instance in started:
            ended = await paper.until(instance, "SUCCEEDED")
            assert orjson.loads(ended.output) == ["l", "r"]


def approval(early: str = "DROP", seconds: int = 3600) -> dict[str, Any]:
    return document(
        {
            "prepare": task("ask", "safe"),
            "ask": wait("done", on_timeout={"next": "late"}, match=ref, early=early, seconds=seconds),
            "late": end({"const": "nobody answered"}),
            "done": end(
                {"object": {"said": {"ref": "ask"}, "by": {"ref": "ask", "of": "meta", "path": ["actor"]}}}
            ),
        }
    )


async def test_a_signal_on_time_moves_the_wait_and_its_repeat_is_the_same_signal(database_url: str) -> None:
    async with Paper(database_url, {"safe": succeeds()}) as paper:
        paper.worker()
        await paper.publish(approval())
        instance = await paper.start("job-1")
        await paper.until(instance, "WAITING")
        first = await paper.signal(instance, "approval", "job-1", {"ok": True}, key="s1")
        assert first["state"] == "CONSUMED"
        again = await paper.signal(instance, "approval", "job-1", {"ok": True}, key="s1")
        assert (again["id"], again["state"]) == (first["id"], "CONSUMED")
        with pytest.raises(Conflict):
            await paper.signal(instance, "approval", "job-1", {"ok": False}, key="s1")
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == {"said": {"ok": True}, "by": "approver"}


async def test_a_signal_before_its_wait_is_kept_and_one_of_another_key_is_not_taken(
    database_url: str,
) -> None:
    async with Paper(database_url, {"safe": succeeds()}) as paper:
        await paper.publish(approval())
        instance = await paper.start("job-1")
        assert (await paper.signal(instance, "approval", "job-2", 2))["state"] == "PENDING"
        assert (await paper.signal(instance, "approval", "job-1", 1))["state"] == "PENDING"
        paper.worker()
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output)["said"] == 1


async def test_signals_for_missing_finished_or_foreign_workflows_are_answered_clearly(
    database_url: str,
) -> None:
    async with Paper(database_url, {"safe": succeeds()}) as paper:
        paper.worker()
        await paper.publish(approval())
        with pytest.raises(NotFound):
            await paper.signal("0" * 32, "approval", "job-1", 1)
        instance = await paper.start("job-1")
        with pytest.raises(InvalidArgument, match="approval"):
            await paper.signal(instance, "unheard", "job-1", 1)
        await paper.signal(instance, "approval", "job-1", 1)
        await paper.until(instance, "SUCCEEDED")
        assert (await paper.signal(instance, "approval", "job-1", 2))["state"] == "REJECTED"


async def test_a_wait_that_nobody_answers_takes_its_time_out(database_url: str) -> None:
    flow = approval()
    flow["nodes"]["ask"]["timeout_ms"] = 30
    async with Paper(database_url, {"safe": succeeds()}) as paper:
        paper.worker()
        await paper.publish(flow)
        ended = await paper.until(await paper.start("job-1"), "SUCCEEDED")
        assert orjson.loads(ended.output) == "nobody answered"


async def test_an_unknown_effect_waits_for_a_person_and_a_cancel_is_kept(database_url: str) -> None:
    flow = document({"pay": task("done", "risky"), "done": end()})
    async with Paper(database_url, {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM")}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        shown = await paper.control(instance, Action.CANCEL)
        assert shown["workflow"]["state"] == "NEEDS_REVIEW"
        assert shown["workflow"]["cancel_requested"] is True
        step = (await paper.steps(instance))["pay"]
        assert step.review_class == "UNKNOWN"
        await paper.conclude(instance, "pay", step.revision, "FAILED", code="GONE")
        await paper.until(instance, "CANCELLED")


async def test_a_review_that_is_concluded_goes_on_with_the_given_result(database_url: str) -> None:
    flow = document({"pay": task("done", "risky"), "done": end({"ref": "pay"})})
    async with Paper(database_url, {"risky": lambda _: Told(Said.EXCEPTION, code="BOOM")}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["pay"]
        with pytest.raises(FailedPrecondition):
            await paper.conclude(instance, "pay", step.revision + 7, "SUCCEEDED", result=1)
        await paper.conclude(instance, "pay", step.revision, "SUCCEEDED", result={"paid": 5})
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == {"paid": 5}


async def test_a_rerun_of_a_proven_step_uses_a_new_activation_and_the_same_effect_key(
    database_url: str,
) -> None:
    keys: list[str] = []
    generations: list[int] = []

    def once_bad(offer: Any) -> Told:
        keys.append(offer.effect_key)
        generations.append(offer.generation)
        return Told(Said.EXCEPTION, code="BOOM") if len(keys) == 1 else Told(Said.SUCCEEDED, result=7)

    flow = document(
        {
            "pay": task("next", "risky"),
            "next": task("done", "safe", value={"ref": "pay"}),
            "done": end({"ref": "next"}),
        }
    )
    echo = lambda offer: Told(Said.SUCCEEDED, result=orjson.loads(offer.parameters)["value"])  # noqa: E731
    async with Paper(database_url, {"risky": once_bad, "safe": echo}) as paper:
        paper.worker()
        await paper.publish(flow)
        instance = await paper.start({})
        await paper.until(instance, "NEEDS_REVIEW")
        step = (await paper.steps(instance))["pay"]
        with pytest.raises(FailedPrecondition):
            await paper.conclude(
                instance, "pay", step.revision, "RERUN", basis="ACCEPTED_RISK", evidence=None
            )
        await paper.conclude(instance, "pay", step.revision, "RERUN")
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == 7
        assert len(set(keys)) == 1
        assert generations == [1, 2], "what fences by generation must let the second activation in"
        assert (await paper.steps(instance))["pay"].activation_no == 2


async def test_pause_stops_what_has_not_started_and_resume_goes_on(database_url: str) -> None:
    async with Paper(database_url, {"safe": succeeds(1)}) as paper:
        await paper.publish(chain())
        instance = await paper.start(1)
        paused = await paper.control(instance, Action.PAUSE, expected=1, key="p1")
        assert (paused["workflow"]["paused"], paused["workflow"]["control_version"]) == (True, "2")
        assert await paper.control(instance, Action.PAUSE, expected=1, key="p1") == paused
        with pytest.raises(FailedPrecondition):
            await paper.control(instance, Action.RESUME, expected=1)
        paper.worker()
        for _ in range(5):
            await paper.sweep()
            await asyncio.sleep(0.01)
        assert (await paper.steps(instance))["first"].state == "WAITING_TASK"
        await paper.control(instance, Action.RESUME, expected=2)
        await paper.until(instance, "SUCCEEDED")


async def test_versions_never_change_and_the_current_one_is_resolved_once(database_url: str) -> None:
    async with Paper(database_url, {"safe": succeeds(1)}) as paper:
        await paper.publish(chain())
        assert (await paper.publish(chain())).created is False
        other = chain() | {"title": "another"}
        with pytest.raises(Conflict, match="another content"):
            await paper.publish(other)
        instance = await paper.start(1, key="k")
        await paper.publish(other | {"version": 2})
        assert await paper.start(1, key="k") == instance
        assert (await paper.show(instance)).row.definition_version == 1
        assert (await paper.show(await paper.start(1))).row.definition_version == 2
        with pytest.raises(Conflict):
            await paper.start(2, key="k")
        with pytest.raises(NotFound):
            await paper.start(1, version=9)


async def test_a_poll_asks_until_it_knows_and_a_receipt_wins_over_later_answers(database_url: str) -> None:
    from tests.documents import poll

    answers = iter(["pending", "pending", "done"])
    flow = document({"ask": poll("done", receipt=True, every=1), "done": end({"ref": "ask"})})
    flow["nodes"]["ask"]["every_ms"] = 5
    play = lambda _: Told(Said.SUCCEEDED, result={"state": next(answers)})  # noqa: E731
    async with Paper(database_url, {"status": play}) as paper:
        paper.worker()
        await paper.publish(flow)
        ended = await paper.until(await paper.start({}), "SUCCEEDED")
        assert orjson.loads(ended.output) == {"state": "done"}

        paper.plays["status"] = lambda _: Told(Said.SUCCEEDED, result={"state": "pending"})
        instance = await paper.start({})
        await paper.signal(instance, "receipt", "m", {"state": "done", "receipt": "r"})
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == {"state": "done", "receipt": "r"}


async def test_a_result_stored_during_a_pause_goes_on_with_all_earlier_values_at_the_resume(
    database_url: str,
) -> None:
    names = ["one", "two", "three", "four", "five", "six", "seven"]
    nodes = {
        name: task(after, "read" if name == "seven" else "safe", value={"const": number})
        for number, (name, after) in enumerate(zip(names, [*names[1:], "done"], strict=True))
    }
    flow = document({**nodes, "done": end({"array": [{"ref": name} for name in names]})})

    def echo(offer: Any) -> Told:
        return Told(Said.SUCCEEDED, result=orjson.loads(offer.parameters)["value"])

    async with Paper(database_url, {"safe": echo, "read": echo}) as paper:
        paper.worker(handlers=["safe"])
        keeper = paper.worker(handlers=["read"])
        keeper.holding = True
        await paper.publish(flow)
        instance = await paper.start({})
        await until(lambda: keeper.held)
        await paper.control(instance, Action.PAUSE)
        await keeper.play(keeper.held[0])
        assert (await paper.show(instance)).row.checkpoint == '["seven:next"]'
        await paper.control(instance, Action.RESUME)
        ended = await paper.until(instance, "SUCCEEDED")
        assert orjson.loads(ended.output) == [0, 1, 2, 3, 4, 5, 6]
