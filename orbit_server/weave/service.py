"""Sending commands on instances: a definition that is not in memory yet is loaded, then the command sent
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from orbit_sdk.errors import OrbitError
from orbit_sdk.values.ids import Id, IdSeed
from orbit_server.storage.commands import Answered, Command
from orbit_server.storage.database import Database
from orbit_server.weave.inbox.commands import ConsumeReport
from orbit_server.weave.state.running import NotInMemory, Weave

A = TypeVar("A")

# A command names one definition at a time; a second load can only be needed when `current` moved in between.
_LOADS = 3


async def send(database: Database, weave: Weave, command: Command[A], *, background: bool = False) -> A:
    """Submit a command and give its answer. Raises what it is refused with."""
    return (await post(database, weave, command, background=background)).answer


async def post(
    database: Database, weave: Weave, command: Command[A], *, background: bool = False
) -> Answered[A]:
    """As `send`; tells also whether an earlier equal request had given the answer."""
    for _ in range(_LOADS):
        try:
            return await database.committer.post(command, background=background)
        except NotInMemory as missing:
            await weave.catalog.get(missing.key)
    return await database.committer.post(command, background=background)


async def send_all(
    database: Database, weave: Weave, commands: Sequence[Command[Any]], *, background: bool = False
) -> list[Answered[Any] | OrbitError]:
    """Submit many at once, so that they share transactions; each has its own answer or refusal, in order."""
    waiting = [database.committer.post(command, background=background) for command in commands]
    answers: list[Answered[Any] | OrbitError] = []
    for command, future in zip(commands, waiting, strict=True):
        try:
            answers.append(await future)
        except NotInMemory as missing:
            answers.append(await _again(database, weave, command, missing, background))
        except OrbitError as error:
            answers.append(error)
    return answers


async def _again(
    database: Database, weave: Weave, command: Command[Any], missing: NotInMemory, background: bool
) -> Answered[Any] | OrbitError:
    try:
        await weave.catalog.get(missing.key)
        return await post(database, weave, command, background=background)
    except OrbitError as error:
        return error


def companion_factory(weave: Weave, new_seed: Callable[[], IdSeed]) -> Callable[[Id, Id], Command[Any]]:
    """What Pulse is given at start-up: the command that lets a workflow see a change of its task in the
    transaction of that change. Pulse itself knows nothing of workflows.
    """

    def companion(instance_id: Id, task_id: Id) -> Command[Any]:
        return ConsumeReport(instance_id, task_id, None, new_seed(), weave)

    return companion
