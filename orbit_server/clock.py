"""Clocks and chance: the one module of the server that asks the machine for the time or for random bits."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from typing import Protocol

from orbit_sdk.values.ids import IdSeed


class Clock(Protocol):
    """Wall time and monotonic time, both in microseconds."""

    def wall_us(self) -> int:
        """UTC microseconds since 1970."""
        ...

    def monotonic_us(self) -> int:
        """Microseconds of a clock that never steps; only differences mean anything."""
        ...


class SystemClock:
    """The machine's clocks."""

    def wall_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_us(self) -> int:
        return time.monotonic_ns() // 1_000


class ManualClock:
    """A clock that moves only when told to. `step` moves wall time alone, as an administrator or NTP does."""

    def __init__(self, wall_us: int = 1_700_000_000_000_000, monotonic_us: int = 1_000_000) -> None:
        self._wall = wall_us
        self._monotonic = monotonic_us

    def wall_us(self) -> int:
        return self._wall

    def monotonic_us(self) -> int:
        return self._monotonic

    def advance(self, us: int) -> None:
        """Let time pass."""
        self._wall += us
        self._monotonic += us

    def step(self, us: int) -> None:
        """Set the wall clock forward or back without time passing."""
        self._wall += us


class _Process:
    """What makes the seeds of this process its own: asking the system for each of them is what costs."""

    entropy = secrets.token_hex(16)
    count = itertools.count()

    @classmethod
    def renew(cls) -> None:
        cls.entropy = secrets.token_hex(16)


os.register_at_fork(after_in_child=_Process.renew)


def new_seed(clock: Clock) -> IdSeed:
    """The time and random bits of which a command makes its ids; made once, before anything is tried."""
    return IdSeed(time_us=clock.wall_us(), entropy=f"{_Process.entropy}{next(_Process.count):x}")


def random_hex(count: int) -> str:
    """`count` random hex digits: request ids, tokens, nonces."""
    return secrets.token_hex((count + 1) // 2)[:count]


def random_share() -> float:
    """A number in [0, 1), for jitter."""
    return secrets.randbelow(1 << 30) / (1 << 30)
