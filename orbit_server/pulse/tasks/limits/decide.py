"""The arithmetic of limits: pure functions on one row, in whole numbers, so that nothing is lost or made."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.engine.records import altered
from orbit_server.pulse.tasks.limits.records import LimitRow


@dataclass(frozen=True, slots=True)
class Settings:
    """What somebody sets; None does not limit. `rate` tokens per `rate_per_ms`, `burst` at once (None: as
    many as one second brings, at least one).
    """

    running_max: int | None = None
    backlog_max: int | None = None
    rate: int | None = None
    rate_per_ms: int = 1_000
    burst: int | None = None

    @property
    def whole_burst(self) -> int:
        """The burst in force."""
        if self.rate is None:
            return 0
        return self.burst if self.burst is not None else max(1, self.rate * 1_000 // self.rate_per_ms)

    @property
    def limits_anything(self) -> bool:
        """Whether anything is limited at all."""
        return not (self.running_max is None and self.backlog_max is None and self.rate is None)


@dataclass(frozen=True, slots=True)
class Wait:
    """No permit now. `us`: until the next token; None: until one is given back."""

    us: int | None


def refilled(row: LimitRow, now: int) -> LimitRow:
    """The row with the tokens that time has brought."""
    if row.rate is None or now <= row.level_at:
        return row
    full = row.burst * _token(row)
    # A long silence brings no more than a full bucket, and must not overflow on the way there.
    level = full if now - row.level_at >= -(-full // row.rate) else row.level
    if level != full:
        level = min(full, level + (now - row.level_at) * row.rate)
    return altered(row, level=level, level_at=now)


def wait_for(row: LimitRow, now: int) -> Wait | None:
    """Why this row gives no permit now; None when it does."""
    if row.running_max is not None and row.running >= row.running_max:
        return Wait(None)
    if row.rate is not None:
        there = refilled(row, now)
        lacking = _token(row) - there.level
        if lacking > 0:
            return Wait(-(-lacking // row.rate))
    return None


def granted(row: LimitRow, now: int) -> LimitRow:
    """The row with one permit more in use (where those are limited) and one token less."""
    if row.rate is not None:
        there = refilled(row, now)
        row = altered(there, level=there.level - _token(row))
    return row if row.running_max is None else altered(row, running=row.running + 1)


def given_back(row: LimitRow) -> LimitRow:
    """The row with one permit fewer in use. Tokens are spent for good."""
    return altered(row, running=row.running - 1)


def changed(row: LimitRow, settings: Settings, now: int) -> LimitRow:
    """The row under new settings. Tokens already there stay, up to the new burst; a new rate starts full."""
    before = refilled(row, now)
    per_us = settings.rate_per_ms * 1_000
    full = settings.whole_burst * per_us
    level = full
    if before.rate is not None:
        level = min(full, before.level * per_us // _token(before))
    return altered(
        before,
        running_max=settings.running_max,
        backlog_max=settings.backlog_max,
        rate=settings.rate,
        rate_per_ms=settings.rate_per_ms,
        burst=settings.whole_burst,
        level=level,
        level_at=now,
        changed_at=now,
        revision=row.revision + 1,
    )


def _token(row: LimitRow) -> int:
    return row.rate_per_ms * 1_000
