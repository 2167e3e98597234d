"""A worker with the new version of a handler may accept tasks of an older one."""

# Some of what is written here is wrong on purpose.
# mypy: ignore-errors

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

import orbit_sdk as orbit
from orbit_sdk.errors import InvalidArgument


class Sent(BaseModel):
    receipt: str


def first(path: str, urgent: bool = False) -> dict[str, object]:
    return {"path": path, "urgency": 9 if urgent else 0}


def submit() -> orbit.Handler[..., Any]:
    @orbit.handler("job.submit", version=2, queue="jobs", recovery=orbit.Recovery.VERIFIABLE)
    async def submit(ctx: orbit.TaskContext, path: str, urgency: int) -> Sent:
        return Sent(receipt=f"{path}-{urgency}")

    @submit.verify
    def happened(ctx: orbit.TaskContext, path: str, urgency: int) -> orbit.Happened[Sent]:
        return orbit.Happened(Sent(receipt=f"{path}-{urgency}"))

    submit.accepts(1, upgrade=first)
    return submit


def test_an_older_version_is_a_handler_of_its_own() -> None:
    older = orbit.Registry.of(submit())["job.submit@1"]
    assert (older.queue, older.recovery, older.can_verify, older.is_async) == (
        "jobs",
        orbit.Recovery.VERIFIABLE,
        True,
        True,
    )
    given = older.parse_parameters({"path": "a", "urgent": True})
    assert asyncio.run(older.run(None, **given)) == Sent(receipt="a-9")
    given = older.parse_parameters({"path": "a"})
    assert asyncio.run(older.run_verify(None, **given)) == orbit.Happened(Sent(receipt="a-0"))
    with pytest.raises(InvalidArgument):
        older.parse_parameters({"path": "a", "urgency": 3})


def test_its_types_are_those_that_the_older_version_had() -> None:
    @orbit.handler("job.submit", version=1, queue="jobs", recovery=orbit.Recovery.VERIFIABLE)
    def before(ctx: orbit.TaskContext, path: str, urgent: bool = False) -> Sent: ...

    assert orbit.Registry.of(submit())["job.submit@1"].types_digest() == before.types_digest()


def test_an_accepted_version_beside_the_real_one_is_refused() -> None:
    @orbit.handler("job.submit", version=1)
    def real(ctx: orbit.TaskContext, path: str) -> Sent: ...

    with pytest.raises(orbit.BuildError) as caught:
        orbit.Registry.of([real, submit()])
    assert caught.value.reason == "HANDLER_TWICE"


@pytest.mark.parametrize("version", [0, 2, 3, 1, True])
def test_only_older_versions_are_accepted_and_each_once(version: int) -> None:
    with pytest.raises(orbit.BuildError) as caught:
        submit().accepts(version, upgrade=first)
    assert caught.value.reason == "VERSION"


def test_an_upgrade_without_types_is_refused_at_its_own_line() -> None:
    def bare(path):
        return {"path": path, "urgency": 1}

    @orbit.handler("job.plain", version=2)
    def plain(ctx: orbit.TaskContext, path: str, urgency: int) -> None: ...

    plain.accepts(1, upgrade=bare)
    with pytest.raises(orbit.BuildError) as caught:
        orbit.Registry.of(plain)
    assert caught.value.reason == "MISSING_ANNOTATION"
    assert caught.value.place is not None
    assert caught.value.place.line == bare.__code__.co_firstlineno
