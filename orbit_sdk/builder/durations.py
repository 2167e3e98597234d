"""Times that an author gives: always with a unit, never rounded."""

from __future__ import annotations

from datetime import timedelta

from orbit_sdk.builder.trace import Trace

__all__ = ["milliseconds"]

_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(trace: Trace, value: object, what: str) -> int:
    """Whole milliseconds of a timedelta, at least 1. Raises BuildError for anything else."""
    if not isinstance(value, timedelta):
        raise trace.refuse(
            "DURATION", f"{what} is {value!r}, which has no unit", f"write {what}=timedelta(seconds=…)"
        )
    if value <= timedelta(0):
        raise trace.refuse(
            "DURATION", f"{what} is {value!r}, which is not positive", "write a time above zero"
        )
    if value % _MILLISECOND:
        raise trace.refuse(
            "DURATION", f"{what} is {value!r}, which is finer than a millisecond", "round it yourself"
        )
    return value // _MILLISECOND
