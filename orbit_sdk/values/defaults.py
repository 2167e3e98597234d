"""Every default that Orbit writes into documents or settings; frozen like the format itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULTS", "Defaults"]

_SECOND_MS = 1_000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class Defaults:
    """Step policy (written into definitions) and server times (settings); durations in ms."""

    attempt_timeout_ms: int = 60 * _SECOND_MS
    total_timeout_ms: int = 7 * _DAY_MS
    start_within_ms: int | None = None
    priority: int = 5
    backoff_ms: int = 1 * _SECOND_MS
    backoff_factor_percent: int = 200
    max_backoff_ms: int = 10 * _MINUTE_MS
    jitter_percent: int = 20
    attempts: int = 5
    attempts_read_only: int = 20
    on_arm_failure: str = "STOP_OTHERS"
    on_failure: str = "REVIEW"
    early: str = "DROP"
    parameters_version: int = 1

    lease_ms: int = 30 * _SECOND_MS
    lease_skew_ms: int = 2 * _SECOND_MS
    heartbeat_ms: int = 10 * _SECOND_MS
    session_silence_ms: int = 25 * _SECOND_MS
    verify_within_ms: int = 24 * _HOUR_MS
    misfire_after_ms: int = 60 * _SECOND_MS
    page_size: int = 20
    uncharged_attempts: int = 5


DEFAULTS: Final = Defaults()
