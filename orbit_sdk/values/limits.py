"""Every product limit in one place. A server may lower them; nobody raises them silently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_LIMITS", "MAX_SAFE_INTEGER", "Limits"]

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exact."""

_KIB = 1024
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts, bytes (`_bytes`, of UTF-8) and milliseconds (`_ms`); all inclusive."""

    nodes: int = 256
    arms: int = 32
    nesting: int = 8
    type_chain: int = 64
    document_bytes: int = 256 * _KIB
    attempts: int = 20
    rounds: int = 1_000
    attempts_over_rounds: int = 5_000
    wait_ms: int = 366 * _DAY_MS
    poll_ms: int = 366 * _DAY_MS
    total_ms: int = 366 * _DAY_MS
    input_bytes: int = 256 * _KIB
    result_bytes: int = 256 * _KIB
    output_bytes: int = 256 * _KIB
    signal_body_bytes: int = 64 * _KIB
    evidence_bytes: int = 64 * _KIB
    event_payload_bytes: int = 64 * _KIB
    unmatched_signals: int = 1_024
    granted_attempts: int = 20
    granted_rounds: int = 1_000
    granted_ms: int = 30 * _DAY_MS
    json_depth: int = 32
    object_key_chars: int = 128
    advance_transitions: int = 64
    batch_items: int = 1_000
    batch_bytes: int = 4 * _KIB * _KIB


DEFAULT_LIMITS: Final = Limits()
