"""Random histories of random workflows on a real database, with the pure engine as the oracle.

After every step everything that can be seen of the instance must be what the engine alone makes of the same
facts. `ORBIT_MACHINE` = "<histories>x<steps>" sets how many.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from hypothesis import given, settings

from orbit_sdk.engine import (
    StepState,
    Verdict,
)
from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.verify.rules import violations
from orbit_server.weave.control.commands import Action
from tests.property.strategies import randoms
from tests.storage.machine import real
from tests.storage.machine.machine import WeaveMachine
from tests.storage.weave.paper import Paper

HISTORIES, STEPS = (int(part) for part in os.environ.get("ORBIT_MACHINE", "20x40").split("x"))


class Walk(WeaveMachine):
    """Leads an instance on, or lets anything at all happen to it."""

    def go_on(self, random: Random) -> None:
        """Whatever leads on from where it stands; left to chance alone few workflows would come far."""
        likely: list[Callable[[], None]] = []
        for step in self.flow.live().values():
            if step.state is StepState.WAITING_SIGNAL:
                likely.append(partial(self.wanted_signal, step, random))
            elif step.state is StepState.WAITING_TIME:
                likely.append(self.until_due)
            elif step.state is StepState.NEEDS_REVIEW:
                verdict = random.choice((Verdict.SUCCEEDED, Verdict.RERUN))
                likely.append(partial(self.decide, pick=0, verdict=verdict, proven=True, stale=1))
        found = self.read(lambda conn: real.tasks_of(conn, self.instance))
        if any(row["state"] == "READY" for row in found):
            likely.append(partial(self.claim, pick=0, one_step=True, verifies=True))
        if self.offers:
            word = random.choice((*[Said.SUCCEEDED] * 8, Said.FINAL, Said.RETRYABLE, Said.EXCEPTION))
            chance = random.choice((1, 1, 1, 4, 5, 6, 7))
            likely.append(partial(self.report, pick=0, word=word, alone=chance == 4, chance=chance))
        if any(row["state"] == "PENDING" for row in self.read(self._inbox)):
            likely.append(partial(self.consume, pick=0))
        if self.flow.instance.paused:
            likely.append(partial(self.control, action=Action.RESUME, stale=1))
        likely.append(self.advance)
        random.choice(likely)()

    def _inbox(self, conn: Any) -> list[dict[str, Any]]:
        return real.inbox_of(conn, self.instance)

    def until_due(self) -> None:
        self.time_passes(amount=60)
        self.look()

    def wanted_signal(self, step: Any, random: Random) -> None:
        asked = {"signal": step.signal, "match": json.loads(step.match_key), "body": {"ok": True}}
        self.send_signal(f"{random.getrandbits(32):x}", asked, {}, None)

    def walk(self, random: Random, steps: int) -> None:
        """So many things happen, the likely ones more often."""

        def pick() -> int:
            return random.randint(0, 99)

        def said() -> Said:
            return random.choice((*[Said.SUCCEEDED] * 8, *Said))

        def control() -> None:
            action = Action.CANCEL if pick() < 8 else random.choice((Action.PAUSE, Action.RESUME))
            self.control(action=action, stale=pick() % 8)

        def on() -> None:
            self.go_on(random)

        things = (
            *[on] * 45,
            *[lambda: self.claim(pick=pick(), one_step=pick() < 50, verifies=pick() < 50)] * 6,
            *[lambda: self.report(pick=pick(), word=said(), alone=pick() < 30, chance=pick())] * 6,
            *[lambda: self.consume(pick=pick())] * 4,
            *[lambda: self.time_passes(amount=random.choice((0, 1, 30, 60, 600)))] * 2,
            *[self.look] * 4,
            *[self.advance] * 2,
            *[self.tasks_due] * 2,
            *[lambda: self.signal(random)] * 4,
            *[
                lambda: self.decide(
                    pick=pick(),
                    verdict=random.choice([*Verdict]),
                    proven=pick() < 50,
                    stale=pick() % 8,
                )
            ]
            * 3,
            *[control] * 2,
            lambda: self.signal_again(pick=pick(), same=pick() < 50),
            lambda: self.lose(pick=pick()),
            self.expire_signals,
            lambda: self.engine_error(pick=pick(), chance=pick() % 4),
        )
        for _ in range(steps):
            random.choice(things)()


def test_a_database_holds_what_the_engine_says_whatever_happens(migrated_url: str) -> None:
    with asyncio.Runner() as runner:
        paper = Paper(migrated_url)
        runner.run(paper.__aenter__())

        @settings(max_examples=HISTORIES, deadline=None)
        @given(randoms())
        def histories(random: Random) -> None:
            machine = Walk(paper, runner)
            machine.start(random)
            machine.walk(random, STEPS)
            machine.flow.check()

        try:
            histories()
            assert runner.run(paper.database.read(violations)) == []
        finally:
            runner.run(paper.__aexit__(None, None, None))
