"""`record`: a frozen dataclass to every checker, and one that is made fast when it runs.

The constructor that `dataclass(frozen=True)` writes sets each field through a call: a row with forty fields
takes it five microseconds, eight times as long as one that assigns. A step of a workflow makes some twenty
such rows. So the kinds of which that many are made are frozen for mypy and pyright, which look at every line
of this project, and not for the interpreter. Everything else stays `dataclass(frozen=True, slots=True)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, slots):
        """Use it as `@record(frozen=True, slots=True)`, which is how checkers read it."""
        assert frozen
        return dataclass(slots=slots, unsafe_hash=True)


__all__ = ["record"]
