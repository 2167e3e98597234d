"""What people type as values: JSON texts, files of it, durations, labels, handler names."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.json_strict import parse_json
from orbit_sdk.values.limits import DEFAULT_LIMITS

__all__ = ["duration_ms", "json_value", "labels", "versioned"]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_STDIN = "-"


def json_value(text: str, option: str) -> Any:
    """JSON as it was typed, `@file` for a file of it, `-` for standard input. Raises BadParameter."""
    if text == _STDIN:
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{text[1:]} cannot be read: {error}", param_hint=option) from None
    try:
        return parse_json(text, max_bytes=DEFAULT_LIMITS.batch_bytes)
    except InvalidArgument as error:
        hint = f". A text is written in quotes: '\"{text}\"'" if text.isidentifier() else ""
        raise typer.BadParameter(f"{error.message}{hint}", param_hint=option) from None


def duration_ms(text: str, option: str) -> int:
    """`25s`, `500ms`, `1.5h` as whole milliseconds. Raises BadParameter."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(
            f"{text!r} is no duration: write 500ms, 25s, 10m, 2h or 1d", param_hint=option
        )
    return round(float(found[1]) * _UNIT_MS[found[2]])


def labels(texts: Sequence[str], option: str) -> dict[str, str]:
    """`name=value` pairs. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not name=value", param_hint=option)
        found[name] = value
    return found


def versioned(text: str, what: str) -> tuple[str, int | None]:
    """`name` or `name@version`. Raises BadParameter."""
    name, at, version = text.partition("@")
    if not at:
        return name, None
    if not version.isascii() or not version.isdigit() or int(version) < 1:
        raise typer.BadParameter(f"{text!r} is not a {what}: write name@version, with a version from 1 on")
    return name, int(version)
