"""One shape for everything that a check can say, whoever said it: imports, the builder, the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbit_sdk.errors import InvalidArgument, PayloadTooLarge

if TYPE_CHECKING:
    from orbit_sdk.check.diagnostics import Diagnostic, Place, Related
    from orbit_sdk.handlers.problems import BuildError

__all__ = ["ERROR", "WARNING", "Finding", "Spot", "of_build_error", "of_diagnostics", "of_form", "relative"]

ERROR = "error"
WARNING = "warning"

_SYNTAX = re.compile(r"at line (\d+), column (\d+)$")


@dataclass(frozen=True, slots=True)
class Spot:
    """Another place that takes part in a finding, with what it has to do with it."""

    note: str
    path: str
    file: str | None = None
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """`line` and `column` count from 1; `path` is where in the document, `related` what else takes part."""

    code: str
    severity: str
    message: str
    help: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    node: str | None = None
    path: str | None = None
    related: tuple[Spot, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity == ERROR

    def to_json(self) -> dict[str, Any]:
        """For programs; files below the working folder are named from there."""
        found = _given(asdict(self))
        if self.related:
            found["related"] = [_given(asdict(spot)) for spot in self.related]
        return found


def relative(file: str) -> str:
    """The file as a person in the working folder names it."""
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file


def of_build_error(error: BuildError) -> list[Finding]:
    """Every misuse that the builder saw."""
    return [
        Finding(
            problem.code,
            ERROR,
            problem.found,
            problem.instead,
            *_position(problem.place),
            related=_spots(problem.related),
        )
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
            related=_spots(item.related),
        )
        for item in found
    ]


def of_form(error: InvalidArgument | PayloadTooLarge, file: str, text: str) -> list[Finding]:
    """What makes a JSON text no definition at all."""
    from orbit_sdk.check.diagnostics import place_of
    from orbit_sdk.check.documents import form_invalid, path_of
    from orbit_sdk.cli.json_places import json_places

    code, help_ = form_invalid.code, form_invalid.remedy
    if not error.details:
        return [Finding(code, ERROR, error.message, help_, file)]
    places = json_places(text, file)
    found: list[Finding] = []
    for item in error.details:
        syntax = _SYNTAX.search(item.reason)
        place = place_of(path_of(item.field), places)
        line = int(syntax[1]) if syntax else None if place is None else place.line
        column = int(syntax[2]) if syntax else None if place is None else place.column
        said = f"{item.field} {item.reason}"
        found.append(Finding(code, ERROR, said, help_, file, line, column, path=item.field))
    return found


def _spots(related: Iterable[Related]) -> tuple[Spot, ...]:
    return tuple(Spot(each.note, each.json_path, *_position(each.place)) for each in related)


def _given(values: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in values.items() if value not in (None, ())}
    return {**given, "file": relative(given["file"])} if "file" in given else given


def _position(place: Place | None) -> tuple[str | None, int | None, int | None]:
    return (None, None, None) if place is None else (place.file, place.line, place.column)
