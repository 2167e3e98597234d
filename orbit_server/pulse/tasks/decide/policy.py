"""The retry policy that a task was accepted with, and the back-off it gives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import orjson

from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.ids import Id


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Back-off of automatic retries: milliseconds and per cent. The number of attempts is on the task."""

    backoff_ms: int = DEFAULTS.backoff_ms
    factor_percent: int = DEFAULTS.backoff_factor_percent
    max_backoff_ms: int = DEFAULTS.max_backoff_ms
    jitter_percent: int = DEFAULTS.jitter_percent

    def to_json(self) -> str:
        """The text stored with the task."""
        return (
            f'{{"backoff_ms":{self.backoff_ms},"factor_percent":{self.factor_percent},'
            f'"jitter_percent":{self.jitter_percent},"max_backoff_ms":{self.max_backoff_ms}}}'
        )


DEFAULT_POLICY = RetryPolicy()


def policy_of(text: str | None) -> RetryPolicy:
    """The policy as stored; the product's defaults when none was."""
    if text is None:
        return DEFAULT_POLICY
    stored = orjson.loads(text)
    return RetryPolicy(
        stored["backoff_ms"], stored["factor_percent"], stored["max_backoff_ms"], stored["jitter_percent"]
    )


def backoff_us(policy: RetryPolicy, tries: int, salt: Id, floor_ms: int) -> int:
    """Microseconds to wait after the `tries`-th attempt (1 is the first).

    Jitter only shortens, so the cap holds; it follows from the salt (the attempt's id), so that a rerun of
    the same decision waits equally long. The caller stores the instant: a restart does not draw again.
    """
    wait = policy.backoff_ms
    for _ in range(max(0, tries - 1)):
        wait = wait * policy.factor_percent // 100
        if wait >= policy.max_backoff_ms or wait <= 0:
            break
    wait = min(wait, policy.max_backoff_ms)
    share = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:4], "big") / 0xFFFF_FFFF
    wait_us = int(wait * 1000 * (1 - policy.jitter_percent / 100 * share))
    return max(wait_us, floor_ms * 1000)


def verify_backoff_us(asked_for_us: int, salt: Id, *, min_ms: int, max_ms: int) -> int:
    """Microseconds until a verification is asked again, when it has been asked for `asked_for_us` already.

    Waiting half as long as it took so far grows like a back-off and needs no counter.
    """
    share = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:4], "big") / 0xFFFF_FFFF
    return min(max(min_ms * 1000, int(asked_for_us * (0.4 + 0.2 * share))), max_ms * 1000)
