"""The three answers of a verify handler. There is no fourth: silence is never evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias

from typing_extensions import TypeVar

__all__ = ["CannotHappenAnyMore", "CannotTell", "Happened", "Verdict"]

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Happened(Generic[R_co]):
    """It happened; `result` is what the handler would have returned."""

    result: R_co


@dataclass(frozen=True, slots=True)
class CannotHappenAnyMore:
    """It did not happen, and a call still under way cannot make it happen: the other side is fenced."""


@dataclass(frozen=True, slots=True)
class CannotTell:
    """Not known yet: asked again on the verification's own budget, then a person decides."""


R = TypeVar("R")
Verdict: TypeAlias = Happened[R] | CannotHappenAnyMore | CannotTell
