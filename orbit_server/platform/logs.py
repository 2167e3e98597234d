"""Logs: one JSON object per line, with ids and never with payloads."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final

import orjson

from orbit_sdk.values.instants import to_rfc3339

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A record as `{"at", "level", "logger", "message", …}`; what was given as `extra` stands beside it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": to_rfc3339(int(record.created * 1_000_000)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _OWN}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


def configure_logging(level: str) -> None:
    """Send everything to standard error as JSON. Called once, by the process that is a server."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("hypercorn.error", "alembic", "asyncio", "quart"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
