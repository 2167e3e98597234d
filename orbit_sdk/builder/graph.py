"""The graph on its way: nodes whose exits are still open, and the arms in which they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from orbit_sdk.check.diagnostics import Place
from orbit_sdk.check.narrow import Known
from orbit_sdk.values.json_strict import Json

__all__ = ["ArmFailed", "Draft", "Expr", "OpenExit", "Scope"]

Expr: TypeAlias = dict[str, Json]
"""An expression or condition in the form of the definition."""


class ArmFailed(BaseException):
    """Unwinds an arm that ended with `fail()`. No `Exception`: a broad `except` must not go on after it."""


@dataclass(eq=False, slots=True)
class Draft:
    """A node on its way: its body without exits, and where its exits lead so far."""

    kind: str
    key: str
    body: dict[str, Any]
    place: Place | None
    exits: dict[str, Draft] = field(default_factory=dict)
    inputs: list[tuple[OpenExit, Expr]] = field(default_factory=list)
    """Of a MERGE: one value per incoming edge."""
    join: Draft | None = None
    """Of a PARALLEL: where its arms meet."""
    case_places: list[Place | None] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class OpenExit:
    """An exit that does not lead anywhere yet."""

    draft: Draft
    exit: str


@dataclass(eq=False, slots=True)
class Scope:
    """An arm, or the whole workflow: what is made in it can be used in it and inside it only."""

    name: str
    parent: Scope | None
    open: list[OpenExit]
    known: frozenset[Known] = frozenset()
    made: int = 0

    @property
    def depth(self) -> int:
        """How many arms it lies in."""
        found, scope = 0, self.parent
        while scope is not None:
            found, scope = found + 1, scope.parent
        return found

    def reaches(self, other: Scope) -> bool:
        """Whether something made in `other` can be used here."""
        scope: Scope | None = self
        while scope is not None:
            if scope is other:
                return True
            scope = scope.parent
        return False

    def all_known(self) -> frozenset[Known]:
        """What is certain here, by this arm's condition and those around it."""
        known = self.known
        scope = self.parent
        while scope is not None:
            known |= scope.known
            scope = scope.parent
        return known
