"""What an author may give by mistake although the signature says otherwise: judged at run time."""

from __future__ import annotations

import re
from typing import TypeGuard

__all__ = ["is_text", "is_whole", "shown_reference"]

_SHOWN = re.compile(r"<ref [\w.]+: [^<>]*>|<condition \{[^<>]*>")


def is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text."""
    return isinstance(value, str)


def is_whole(value: object, least: int, most: int | None = None) -> TypeGuard[int]:
    """Whether it is a whole number (a boolean is none) within bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value >= least and (most is None or value <= most)


def shown_reference(text: str) -> str | None:
    """The shown form of a reference inside a text (`repr` gave it), when there is one."""
    found = _SHOWN.search(text)
    return found[0] if found is not None else None
