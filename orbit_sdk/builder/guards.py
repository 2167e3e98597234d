"""What an author may give by mistake although the signature says otherwise: judged at run time."""

from __future__ import annotations

from typing import TypeGuard

__all__ = ["is_text", "is_whole"]


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text."""
    return isinstance(value, str)


def is_whole(value: object, least: int, most: int | None = None) -> TypeGuard[int]:
    """Whether it is a whole number (a boolean is none) within bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value >= least and (most is None or value <= most)
