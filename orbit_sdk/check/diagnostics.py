"""What a check has to say: one frozen value per finding, nothing that prints or raises.

A diagnostic never stops the check that made it, and the same definition always gives the same diagnostics
in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from orbit_sdk.values.paths import PathPart, field_path

Path = tuple[PathPart, ...]
"""Where something lies in the document: keys and array indexes from the top."""


class Severity(StrEnum):
    """ERROR forbids publication; WARNING is shown and forbids nothing."""

    ERROR = "ERROR"
    WARNING = "WARNING"


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the author's source; `line` and `column` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


SideTable = Mapping[str, Place]
"""Source places by JSON path. A part without its own entry takes that of its nearest parent."""


@dataclass(frozen=True, slots=True)
class Related:
    """Another part of the document that takes part in the finding (the other fork, a step of the cycle)."""

    node: str | None
    json_path: str
    note: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    `code` is stable and documented; `json_path` is written as `nodes.route.cases[0].next` (`$` for the
    document itself); `message` is one sentence of what is wrong and `help` one of what to do.
    """

    code: str
    severity: Severity
    node: str | None
    json_path: str
    message: str
    help: str
    related: tuple[Related, ...] = ()
    place: Place | None = None

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        where = str(self.place) if self.place is not None else self.json_path
        return f"{where}: {self.severity.value.lower()} {self.code}: {self.message}"


def place_of(path: Path, side: SideTable | None) -> Place | None:
    """The source place of a part: its own, else that of the nearest parent that has one."""
    if not side:
        return None
    for length in range(len(path), -1, -1):
        found = side.get(field_path(path[:length]))
        if found is not None:
            return found
    return None


def order_of(diagnostic: Diagnostic) -> tuple[int, str, str, str, str]:
    """Sort key: errors first, then by node, path and code, so that equal documents give equal lists."""
    rank = 0 if diagnostic.is_error else 1
    return (rank, diagnostic.node or "", diagnostic.json_path, diagnostic.code, diagnostic.message)
