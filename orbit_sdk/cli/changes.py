"""Where two JSON documents differ, in a few words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orbit_sdk.values.paths import PathPart, field_path

__all__ = ["changed_paths"]


def changed_paths(before: Any, after: Any) -> list[str]:
    """The paths of what was changed, added or taken away, outermost first."""
    return [field_path(path) for path in _changes(before, after, ())]


def _changes(before: Any, after: Any, path: tuple[PathPart, ...]) -> Iterator[tuple[PathPart, ...]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            if name in before and name in after:
                yield from _changes(before[name], after[name], (*path, name))
            else:
                yield (*path, name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(one, other, (*path, index))
    elif before != after:
        yield path
