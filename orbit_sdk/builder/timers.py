"""TIMER: wait for a while, or until an instant."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from orbit_sdk.builder import shapes
from orbit_sdk.builder.conditions import constant_of
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.durations import milliseconds
from orbit_sdk.builder.express import use
from orbit_sdk.builder.refs import Ref, ref_data
from orbit_sdk.builder.trace import Trace

__all__ = ["sleep"]


def sleep(until: timedelta | datetime, *, key: str | None = None, title: str | None = None) -> None:
    """Go on after a while (a timedelta), or at an instant (an aware datetime, or a reference to one)."""
    trace = current_trace("orbit.sleep")
    body: dict[str, Any] = {} if title is None else {"title": title}
    _until(trace, until, body)
    trace.add("TIMER", trace.make_key(key, "sleep"), body)


def _until(trace: Trace, until: object, body: dict[str, Any]) -> None:
    if isinstance(until, Ref):
        if shapes.format_of(ref_data(until).schema, trace.book.types) != "date-time":
            raise trace.refuse(
                "DURATION", f"orbit.sleep is given {until!r}", "give it a reference to a datetime"
            )
        body["until"] = use(trace, until, "orbit.sleep", {"type": "string", "format": "date-time"})
    elif isinstance(until, datetime):
        instant = constant_of(trace, until, {"type": "string", "format": "date-time"}, "orbit.sleep")
        body["until"] = {"const": instant}
    else:
        body["delay_ms"] = milliseconds(trace, until, "delay")
