"""What may be repeated: the one thing about a handler that Orbit cannot find out by itself."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Recovery"]


class Recovery(StrEnum):
    """What Orbit may do after a lost lease, a time-out or an unexpected exception.

    READ_ONLY      no effect outside: retried; a definite failure when the budget ends
    IDEMPOTENT     repeating with the same `ctx.effect_key` does nothing twice: retried; unknown when the
                   budget ends and an attempt may have had an effect
    VERIFIABLE     the handler's verify function finds out what happened
    MARKED         the handler calls `ctx.begin_effect()` just before the irrevocable call; before that a
                   retry is safe
    CONSERVATIVE   the default: never repeated without a person's decision
    """

    READ_ONLY = "READ_ONLY"
    IDEMPOTENT = "IDEMPOTENT"
    VERIFIABLE = "VERIFIABLE"
    MARKED = "MARKED"
    CONSERVATIVE = "CONSERVATIVE"

    @property
    def may_poll(self) -> bool:
        """Whether a POLL may ask this handler over and over."""
        return self in (Recovery.READ_ONLY, Recovery.IDEMPOTENT)
