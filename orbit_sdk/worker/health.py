"""The health port: `/healthz`, `/readyz` and `/metrics` over the plainest HTTP, on the uplink's own loop.

It is made for probes: one request per connection, small, quick, and without a word about what runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["Health", "serve_health"]

_LINE_MAX = 1_000
_PATIENCE_S = 5
_CONNECTIONS_MAX = 16
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class Health:
    """A worker at one moment. `stuck`: handlers that outlived their attempts; `stuck_max`: so many can be
    replaced.
    """

    connected: bool
    draining: bool
    slots: int
    busy: int
    stuck: int
    stuck_max: int
    lost: int
    replaced: int
    sessions: int
    outcomes: tuple[tuple[str, int], ...]

    @property
    def live(self) -> bool:
        """A restart would not help: no slot is lost for good."""
        return self.stuck <= self.stuck_max

    @property
    def ready(self) -> bool:
        """It takes work."""
        return self.connected and not self.draining and self.live

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        match path:
            case "/healthz":
                if self.live:
                    return 200, "ok\n"
                return 503, f"{self.stuck} handlers have outlived their attempts; only a restart frees them\n"
            case "/readyz":
                if self.ready:
                    return 200, "ready\n"
                word = "leaving" if self.draining else "stuck" if not self.live else "not connected"
                return 503, f"{word}\n"
            case "/metrics":
                return 200, "".join(self._metrics())
            case _:
                return 404, "there are /healthz, /readyz and /metrics\n"

    def _metrics(self) -> Iterator[str]:
        gauges = {
            "connected": ("Whether a session is open.", int(self.connected)),
            "draining": ("Whether it leaves.", int(self.draining)),
            "slots": ("Attempts that may run at once.", self.slots),
            "busy": ("Attempts that run now.", self.busy),
            "stuck_handlers": ("Handlers that outlived their attempts and still run.", self.stuck),
        }
        for name, (text, value) in gauges.items():
            yield _metric(name, "gauge", text)
            yield f"orbit_sdk_worker_{name} {value}\n"
        counters = {
            "leases_lost_total": ("Attempts whose lease ended first.", self.lost),
            "threads_replaced_total": ("Threads given up for lost.", self.replaced),
            "sessions_total": ("Connections that were greeted.", self.sessions),
        }
        for name, (text, value) in counters.items():
            yield _metric(name, "counter", text)
            yield f"orbit_sdk_worker_{name} {value}\n"
        yield _metric("results_total", "counter", "Results by what they said.")
        for outcome, count in self.outcomes:
            yield f'orbit_sdk_worker_results_total{{outcome="{outcome}"}} {count}\n'


def _metric(name: str, kind: str, text: str) -> str:
    return f"# HELP orbit_sdk_worker_{name} {text}\n# TYPE orbit_sdk_worker_{name} {kind}\n"


async def serve_health(look: Callable[[], Health], host: str | None, port: int) -> asyncio.Server:
    """Open the port. Raises OSError when it is taken."""
    busy = 0

    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal busy
        busy += 1
        try:
            if busy <= _CONNECTIONS_MAX:
                async with asyncio.timeout(_PATIENCE_S):
                    writer.write(_respond(look(), await _path(reader)))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            busy -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    return await asyncio.start_server(page, host, port, limit=_LINE_MAX)


async def _path(reader: asyncio.StreamReader) -> str | None:
    """The path of a GET or HEAD request, read to the end of its head; None for anything else."""
    words = (await reader.readuntil(b"\r\n")).split()
    while (await reader.readuntil(b"\r\n")) != b"\r\n":
        pass
    if len(words) != 3 or words[0] not in (b"GET", b"HEAD"):
        return None
    return words[1].partition(b"?")[0].decode("ascii", "replace")


def _respond(health: Health, path: str | None) -> bytes:
    status, text = (400, "write GET /healthz\n") if path is None else health.answer(path)
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {_TEXT}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
