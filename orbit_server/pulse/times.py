"""Every time that Pulse goes by, as one frozen value; the defaults are the product's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orbit_sdk.values.defaults import DEFAULTS


@dataclass(frozen=True, slots=True)
class PulseTimes:
    """Durations in milliseconds, counts plain.

    `lease_skew_ms` is how long after its end a lease is still honoured for results and renewals, because
    clocks of several database nodes differ. `ready_fresh_ms` is how old a worker's numbered `ready` may be to
    start an attempt in the same step as its claim.
    """

    lease_ms: int = DEFAULTS.lease_ms
    lease_skew_ms: int = DEFAULTS.lease_skew_ms
    heartbeat_ms: int = DEFAULTS.heartbeat_ms
    session_silence_ms: int = DEFAULTS.session_silence_ms
    uncharged_attempts: int = DEFAULTS.uncharged_attempts
    withdrawn_backoff_ms: int = 250
    backoff_floor_ms: int = 100
    verify_within_ms: int = DEFAULTS.verify_within_ms
    verify_backoff_min_ms: int = 1_000
    verify_backoff_max_ms: int = DEFAULTS.max_backoff_ms
    claim_bite: int = 64
    sweep_bite: int = 200
    wake_poll_ms: int = 200

    @property
    def ready_fresh_ms(self) -> int:
        return self.lease_ms // 2


TIMES: Final = PulseTimes()
