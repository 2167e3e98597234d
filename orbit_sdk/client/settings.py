"""What a client is told, with defaults that suit a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Times in seconds.

    Args:
        timeout: one request, connect included.
        retry_for: how long a request that may be repeated is repeated while the server is away or busy.
        backoff, max_backoff: the pause between tries grows from one to the other, with full jitter.
        poll: the longest one request of `Handle.result` waits in the server.
    """

    timeout: float = 30.0
    retry_for: float = 60.0
    backoff: float = 0.1
    max_backoff: float = 5.0
    poll: float = 15.0
