"""The committer: the one door to the database for writes."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from orbit_server.storage.commands import Answered, Command

A = TypeVar("A")


class Committer:
    """Groups the commands that wait and runs one transaction per group."""

    async def submit(self, command: Command[A], *, background: bool = False) -> A:
        """Run a command and give its answer once it is committed.

        Cancelling the caller does not stop the command. Raises the OrbitError of a refusal, ResourceExhausted
        when too many wait, Unavailable when the database does not answer in time (the command may then have
        been applied: repeat it under the same key).
        """
        return (await self.post(command, background=background)).answer

    def post(self, command: Command[A], *, background: bool = False) -> asyncio.Future[Answered[A]]:
        """Queue a command; the future also tells whether the answer is that of an earlier equal request."""
        raise NotImplementedError
