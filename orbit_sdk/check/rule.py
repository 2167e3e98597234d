"""How a rule is written down: a code, a severity, a remedy, a function whose docstring says what it means.

Rules know nothing of each other. A rule yields findings with a path and a message; everything else of a
diagnostic is added here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from orbit_sdk.check.diagnostics import Diagnostic, Path, Related, Severity, SideTable, place_of
from orbit_sdk.values.paths import field_path

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule yields. `path` starts with `nodes`, key when it belongs to a node."""

    path: Path
    message: str
    related: tuple[tuple[Path, str], ...] = ()
    help: str | None = None


@dataclass(frozen=True, slots=True)
class Rule(Generic[View]):
    """One check. `says` is one sentence of what the finding means, `remedy` one of what to do."""

    code: str
    severity: Severity
    says: str
    remedy: str
    find: Callable[[View], Iterable[Finding]]

    def run(self, view: View, side: SideTable | None) -> Iterable[Diagnostic]:
        """The findings about one definition, complete with what this rule always says."""
        for finding in self.find(view):
            yield Diagnostic(
                code=self.code,
                severity=self.severity,
                node=node_of(finding.path),
                json_path=field_path(finding.path),
                message=finding.message,
                help=finding.help or self.remedy,
                related=tuple(_related(where, note, side) for where, note in finding.related),
                place=place_of(finding.path, side),
            )


def rule(
    code: str, *, remedy: str, severity: Severity = Severity.ERROR
) -> Callable[[Callable[[View], Iterable[Finding]]], Rule[View]]:
    """Turn a finding function, whose docstring is the sentence, into a rule."""

    def made(find: Callable[[View], Iterable[Finding]]) -> Rule[View]:
        return Rule(code, severity, find.__doc__ or "", remedy, find)

    return made


def node_of(path: Path) -> str | None:
    """The step key a path lies in, if it lies in one."""
    if len(path) > 1 and path[0] == "nodes":
        return str(path[1])
    return None


def _related(path: Path, note: str, side: SideTable | None) -> Related:
    return Related(node_of(path), field_path(path), note, place_of(path, side))
