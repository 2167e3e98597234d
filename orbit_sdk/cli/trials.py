"""How what was tried is told: the last error, and what a decision would need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orbit_sdk.protocol.reviews import Choice
    from orbit_sdk.protocol.tasks import Attempt
    from orbit_sdk.protocol.workflows import ReviewItem

__all__ = ["choices_among", "choices_of", "error_of", "last_error", "verdict_words"]

_SHOWN_CHARACTERS = 300
_PROOF = "(needs --basis proven --evidence …)"


def error_of(error: Any) -> str | None:
    """`CODE: message` of an error (a model, or as on the wire) on one line, cut where it gets long."""
    if error is None:
        return None
    if isinstance(error, str):
        return error
    code, said = (
        (error.get("code"), error.get("message")) if isinstance(error, dict) else (error.code, error.message)
    )
    message = " ".join(str(said or "").split())
    if len(message) > _SHOWN_CHARACTERS:
        message = f"{message[:_SHOWN_CHARACTERS]}… (--json shows all)"
    return f"{code}: {message}" if message else str(code)


def last_error(attempts: Sequence[Attempt]) -> str | None:
    """The error of the newest attempt that had one; attempts are given newest first."""
    return next((error_of(item.error) for item in attempts if item.error is not None), None)


def verdict_words(verdict: str, *, needs_proof: bool) -> str:
    """A decision as it is typed, with what it cannot go without."""
    return f"{verdict.lower()} {_PROOF}" if needs_proof else verdict.lower()


def choices_of(item: ReviewItem) -> str:
    """The decisions that may be made."""
    return ", ".join(verdict_words(name, needs_proof=name in item.needs_proof) for name in item.allowed)


def choices_among(decisions: Sequence[Choice]) -> str:
    """The same of a review that was read by itself: what is not allowed now is left out."""
    allowed = [choice for choice in decisions if choice.allowed]
    return ", ".join(verdict_words(choice.verdict, needs_proof=choice.needs_proof) for choice in allowed)
