"""One change as it is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orbit_sdk.check.diagnostics import Path
from orbit_sdk.values.paths import field_path


class Party(StrEnum):
    """Who has to do with a change. Running instances never have: they keep the version they started with."""

    CALLERS = "callers"
    CONSUMERS = "output consumers"
    WORKERS = "workers"
    SENDERS = "signal senders"
    OPERATORS = "operators"


class Verdict(StrEnum):
    """BREAKING: something that works today is refused or misread. CAREFUL: something must be done or known
    before the new version takes starts. SAFE: nothing to do.
    """

    BREAKING = "BREAKING"
    CAREFUL = "CAREFUL"
    SAFE = "SAFE"


@dataclass(frozen=True, slots=True)
class Change:
    """`path` is where in the document; `what` is one sentence."""

    path: str
    what: str
    affects: Party
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "what": self.what,
            "affects": self.affects.value,
            "verdict": self.verdict.value,
        }


def change(path: Path, what: str, affects: Party, verdict: Verdict) -> Change:
    """A change at a path."""
    return Change(field_path(path), what, affects, verdict)


def worst(changes: Iterable[Change]) -> Verdict:
    """The verdict on all of them together."""
    order = list(Verdict)
    return min((each.verdict for each in changes), key=order.index, default=Verdict.SAFE)


def new_workflow() -> Change:
    """What is told of a workflow that nothing is known of yet."""
    return change((), "The workflow is new.", Party.CALLERS, Verdict.SAFE)
