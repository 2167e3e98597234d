"""One shape for everything that a check can say, whoever said it: imports, the builder, the rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from orbit_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.check.diagnostics import Diagnostic, Place
    from orbit_sdk.handlers.problems import BuildError

__all__ = ["ERROR", "WARNING", "Finding", "of_build_error", "of_diagnostics", "of_form"]

ERROR = "error"
WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` and `column` count from 1; `path` is where in the document, `notes` what else takes part."""

    code: str
    severity: str
    message: str
    help: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    node: str | None = None
    path: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity == ERROR

    def to_json(self) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value not in (None, ())
        }


def of_build_error(error: BuildError) -> list[Finding]:
    """Every misuse that the builder saw."""
    return [
        Finding(problem.code, ERROR, problem.found, problem.instead, *_position(problem.place))
        for problem in error.problems
    ]


def of_diagnostics(found: Iterable[Diagnostic], file: str | None = None) -> list[Finding]:
    """What the rules say. `file` is shown where the definition has no source of its own."""
    return [
        Finding(
            code=item.code,
            severity=ERROR if item.is_error else WARNING,
            message=item.message,
            help=item.help,
            file=item.place.file if item.place is not None else file,
            line=item.place.line if item.place is not None else None,
            column=item.place.column if item.place is not None else None,
            node=item.node,
            path=item.json_path,
            notes=tuple(f"{other.place or other.json_path}: {other.note}" for other in item.related),
        )
        for item in found
    ]


def of_form(error: InvalidArgument, file: str) -> list[Finding]:
    """What makes a JSON text no definition at all."""
    if not error.details:
        return [Finding("FORM", ERROR, error.message, None, file)]
    return [
        Finding("FORM", ERROR, f"{item.field} {item.reason}", None, file, path=item.field)
        for item in error.details
    ]


def _position(place: Place | None) -> tuple[str | None, int | None, int | None]:
    return (None, None, None) if place is None else (place.file, place.line, place.column)
