"""`[tool.orbit]` of the nearest `pyproject.toml`: what a repository says once instead of in every call.

[tool.orbit]
paths = ["services"]                    # what check, compile and the others look at
output = "definitions"                  # the folder of committed definitions
budget = "budget.json"                  # the agreed figures of `orbit budget`

[tool.orbit.severities]
POLL_ROUNDS_UNEVEN = "error"            # a warning made an error, or "off"
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import typer

__all__ = ["Config", "find_config"]

_KNOWN: Final = ("paths", "output", "budget", "severities")
_SEVERITIES: Final = ("error", "warning", "off")


@dataclass(frozen=True, slots=True)
class Config:
    """Paths are absolute, or relative to the working folder. `severities` is by code of a warning."""

    root: Path
    paths: tuple[str, ...] = ()
    output: Path | None = None
    budget: Path | None = None
    severities: Mapping[str, str] = field(default_factory=dict)

    def targets(self, given: list[str] | None) -> list[str]:
        """What was asked for, else what the configuration names; wrong use when neither says anything."""
        found = given or list(self.paths)
        if not found:
            raise typer.BadParameter("give a target, or name `paths` under [tool.orbit] in pyproject.toml")
        return found


def find_config(folder: Path | None = None) -> Config:
    """The configuration of a folder or the nearest one above it that has a `pyproject.toml` with one."""
    start = (folder or Path.cwd()).resolve()
    for each in (start, *start.parents):
        path = each / "pyproject.toml"
        if path.is_file():
            table = _table(path)
            if table is not None:
                return _config(path, table)
    return Config(start)


def _table(path: Path) -> Any:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("orbit")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}") from None


def _config(path: Path, table: Any) -> Config:
    if not isinstance(table, dict):
        raise _wrong(path, "tool.orbit", "a table")
    for name in table:
        if name not in _KNOWN:
            raise _wrong(path, f"tool.orbit.{name}", f"one of {', '.join(_KNOWN)}")
    paths = table.get("paths", [])
    if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
        raise _wrong(path, "tool.orbit.paths", "a list of texts")
    severities = table.get("severities", {})
    if not isinstance(severities, dict) or not all(each in _SEVERITIES for each in severities.values()):
        raise _wrong(path, "tool.orbit.severities", f"codes with one of {', '.join(_SEVERITIES)}")
    root = path.parent
    return Config(
        root,
        tuple(_target(root, each) for each in paths),
        _path(path, table, "output"),
        _path(path, table, "budget"),
        severities,
    )


def _target(root: Path, text: str) -> str:
    """Paths are relative to the file; what is no path is a module."""
    return str(_near(root / text)) if (root / text).exists() or "/" in text or text.endswith(".py") else text


def _path(path: Path, table: dict[str, Any], name: str) -> Path | None:
    value = table.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise _wrong(path, f"tool.orbit.{name}", "a path")
    return _near(path.parent / value)


def _near(path: Path) -> Path:
    """As a person in the working folder writes it."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path


def _wrong(path: Path, name: str, form: str) -> typer.BadParameter:
    return typer.BadParameter(f"{path}: {name} must be {form}")
