"""A contract is a handler's signature; the body is given elsewhere, and must keep it."""

# Some of what is written here is wrong on purpose.
# mypy: ignore-errors

import asyncio
import inspect
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

import orbit_sdk as orbit


class Job(BaseModel):
    job_id: str


class Sent(BaseModel):
    receipt: str


def submit_contract() -> orbit.Contract[..., Any]:
    @orbit.contract(
        "job.submit", version=1, queue="jobs", recovery=orbit.Recovery.VERIFIABLE, errors=("NO_FUNDS",)
    )
    def submit(ctx: orbit.TaskContext, job: Job, urgency: int = 0) -> Sent: ...

    return submit


def implemented() -> orbit.Contract[..., Any]:
    submit = submit_contract()

    @submit.implement
    async def body(ctx: orbit.TaskContext, job: Job, urgency: int = 0) -> Sent:
        return Sent(receipt=f"{job.job_id}-{urgency}")

    @submit.verify
    def happened(ctx: orbit.TaskContext, job: Job, urgency: int) -> orbit.CannotTell:
        return orbit.CannotTell()

    assert body is submit
    return submit


def test_a_workflow_calls_a_contract_like_a_handler() -> None:
    submit = submit_contract()

    def flow(job: Job) -> Sent:
        return submit(job, urgency=3)

    compiled = orbit.workflow("job.flow", version=1)(flow).compile()
    declared = compiled.definition.to_json()["handlers"]["job.submit@1"]
    assert (declared["verify"], declared["recovery"], declared["errors"]) == (
        True,
        "VERIFIABLE",
        ["NO_FUNDS"],
    )
    assert compiled.side['handlers["job.submit@1"]'].file == __file__


def test_the_definition_is_the_same_with_and_without_a_body() -> None:
    def compiled(submit: Any) -> orbit.Compiled:
        def flow(job: Job) -> Sent:
            return submit(job)

        return orbit.workflow("job.flow", version=1)(flow).compile()

    bare, whole = compiled(submit_contract()), compiled(implemented())
    assert bare.digest == whole.digest
    assert bare.side['handlers["job.submit@1"]'] == whole.side['handlers["job.submit@1"]']


def test_a_worker_takes_what_has_a_body_and_leaves_out_the_rest() -> None:
    module = ModuleType("jobs")
    module.submit, module.other = implemented(), submit_contract()
    assert list(orbit.Registry.of(module)) == ["job.submit@1"]
    assert orbit.Registry.of(module)["job.submit@1"] is module.submit
    assert repr(module.other) == "<contract job.submit@1 VERIFIABLE, no body here>"


def test_a_body_runs_and_is_known_by_its_own_module() -> None:
    submit = implemented()
    result = asyncio.run(submit.run(None, Job(job_id="a"), 2))
    assert result == Sent(receipt="a-2")
    assert submit.is_async
    assert submit.is_implemented
    assert submit.__module__ == __name__


def test_a_body_may_run_in_a_process() -> None:
    @orbit.contract("job.count", version=1)
    def count(ctx: orbit.TaskContext, job: Job) -> int: ...

    @count.implement(run_in="process")
    def body(ctx: orbit.TaskContext, job: Job) -> int:
        return 1

    assert (count.run_in, count.function.__name__) == ("process", "body")


def refusal(build: Any) -> orbit.BuildError:
    with pytest.raises(orbit.BuildError) as caught:
        build()
    assert {one.code for one in caught.value.problems} == {"CONTRACT"}
    assert all(one.instead for one in caught.value.problems)
    return caught.value


def test_differing_parameters_are_told_one_by_one_at_the_body() -> None:
    def body(ctx: orbit.TaskContext, jab: Job, urgency: int = 1) -> Sent: ...

    error = refusal(lambda: submit_contract().implement(body))
    assert [one.found for one in error.problems] == [
        "the body of job.submit@1 differs: it does not take 'job'",
        "the body of job.submit@1 differs: it takes 'jab', which the contract does not have",
        "the body of job.submit@1 differs: the default of 'urgency' is 1, in the contract 0",
    ]
    assert error.place is not None
    assert error.place.line == inspect.getsourcelines(body)[1]


def test_differing_types_are_told_when_a_worker_takes_the_handler() -> None:
    submit = submit_contract()

    @submit.implement
    def body(ctx: orbit.TaskContext, job: Sent, urgency: str) -> Job: ...

    error = refusal(lambda: orbit.Registry.of(submit))
    assert [one.found.partition("differs: ")[2] for one in error.problems] == [
        "'job' is Sent, in the contract Job",
        '\'urgency\' is {"type":"string"}, in the contract {"type":"integer"}',
        "the result is Job, in the contract Sent",
        "",
    ]
    assert "promises a verify function" in error.problems[-1].found


def test_two_bodies_are_refused() -> None:
    submit = implemented()

    def again(ctx: orbit.TaskContext, job: Job, urgency: int) -> Sent: ...

    assert "already has a body" in str(refusal(lambda: submit.implement(again)))


def test_a_contract_without_a_body_cannot_run() -> None:
    submit = submit_contract()
    assert "has no body" in str(refusal(lambda: asyncio.run(submit.run(None, Job(job_id="a")))))
    assert "@submit.implement" in str(refusal(lambda: orbit.Registry.of(submit)))


def test_a_verify_function_must_be_promised() -> None:
    @orbit.contract("job.mark", version=1, recovery=orbit.Recovery.MARKED)
    def mark(ctx: orbit.TaskContext, job: Job) -> None: ...

    def happened(ctx: orbit.TaskContext, job: Job) -> orbit.CannotTell: ...

    assert not mark.can_verify
    assert "verify=True" in str(refusal(lambda: mark.verify(happened)))


def test_a_promise_that_the_level_cannot_keep_is_refused() -> None:
    with pytest.raises(orbit.BuildError) as caught:
        orbit.contract("job.look", version=1, recovery=orbit.Recovery.READ_ONLY, verify=True)
    assert caught.value.reason == "VERIFY_SHAPE"
    with pytest.raises(orbit.BuildError) as caught:
        orbit.contract("Job", version=1)
    assert caught.value.reason == "NAME"
