"""What a handler raises to say how its work ended.

    TaskError
    ├── Retryable           again later; says whether an effect is possible
    ├── Final               the whole operation definitely failed, with a code
    ├── NeedsVerification   nobody knows; ask the verify handler
    ├── NeedsPerson         a person must decide
    └── HandBack            shutting down with nothing left open: no attempt is charged
    Stopped                 raised *by Orbit* in the handler; no `Exception`: a broad `except` lets it pass
    ├── Cancelled           the task was cancelled before anything irrevocable
    └── LeaseLost           this attempt no longer owns the task; stop at once

Any other exception is unexpected: the handler's recovery level rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.names import is_error_code

__all__ = [
    "Cancelled",
    "Effect",
    "Final",
    "HandBack",
    "LeaseLost",
    "NeedsPerson",
    "NeedsVerification",
    "Retryable",
    "Stopped",
    "TaskError",
]


class Effect(StrEnum):
    """Whether this attempt may have changed something outside."""

    NONE = "NONE"
    UNKNOWN = "UNKNOWN"


class TaskError(Exception):
    """Base of what a handler raises on purpose; `details` is JSON that operators will see."""

    def __init__(self, message: str = "", *, details: Mapping[str, Json] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Json] | None = None if details is None else dict(details)


class Retryable(TaskError):
    """Try again, not before `after`. `effect` defaults to UNKNOWN, except for READ_ONLY handlers."""

    def __init__(
        self,
        message: str = "",
        *,
        after: timedelta | None = None,
        effect: Effect | None = None,
        details: Mapping[str, Json] | None = None,
    ) -> None:
        super().__init__(message, details=details)
        if after is not None and after < timedelta(0):
            raise ValueError("after must not be negative")
        self.after = after
        self.effect = effect

    @property
    def after_ms(self) -> int | None:
        """`after` in whole milliseconds, rounded up."""
        return None if self.after is None else -(-self.after // timedelta(milliseconds=1))


class Final(TaskError):
    """The whole operation definitely failed; `code` should be one of the handler's declared `errors`."""

    def __init__(self, code: str, message: str = "", *, details: Mapping[str, Json] | None = None) -> None:
        super().__init__(message, details=details)
        if not is_error_code(code):
            raise ValueError(f"{code!r} is not an error code such as NO_FUNDS")
        self.code = code

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class NeedsVerification(TaskError):
    """Whether it happened is not known, and must be found out before anything else."""


class NeedsPerson(TaskError):
    """Only a person can decide; nothing is repeated."""


class HandBack(TaskError):
    """The worker stops and nothing is left open: the task goes back, without a charged attempt (bounded)."""


class Stopped(BaseException):
    """Raised by Orbit inside a handler. A `BaseException`, so that a broad `except` does not eat it."""


class Cancelled(Stopped):
    """The task is cancelled. `ctx.begin_effect()` raises it; a handler may too, once it has stopped."""


class LeaseLost(Stopped):
    """This attempt no longer owns the task: whatever it does from here on is not authorised."""
