"""Where the parts of a JSON document stand in its text, for findings about documents."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orbit_sdk.values.paths import PathPart, field_path

if TYPE_CHECKING:
    from orbit_sdk.check.diagnostics import Place

__all__ = ["json_places"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_DEEPEST = 200


def json_places(text: str, file: str) -> dict[str, Place]:
    """The place of every part by its path (of its key where it has one), as far as the text is JSON."""
    from orbit_sdk.check.diagnostics import Place

    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    places = {"$": Place(file, 1, 1)}
    for path, offset in _walk(text):
        line = bisect_right(starts, offset)
        column = len(text[starts[line - 1] : offset].encode()) + 1
        places.setdefault(field_path(path), Place(file, line, column))
    return places


def _walk(text: str) -> Iterator[tuple[tuple[PathPart, ...], int]]:
    """Path and offset of each member and item, in the order of the text."""
    open_parts: list[PathPart | None] = []  # per container: the key or index that is being read
    kinds: list[str] = []
    expects_key = False
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in "}]":
            if open_parts:
                open_parts.pop()
                kinds.pop()
            expects_key = False
        elif word == ",":
            expects_key = bool(kinds) and kinds[-1] == "{"
            last = open_parts[-1] if open_parts else None
            if isinstance(last, int):
                open_parts[-1] = last + 1
        elif word == ":":
            expects_key = False
        else:
            if expects_key:
                open_parts[-1] = _key(word)
                yield _path(open_parts), token.start()
            elif kinds and kinds[-1] == "[":
                yield _path(open_parts), token.start()
            if word in "{[":
                if len(kinds) >= _DEEPEST:
                    return
                kinds.append(word)
                open_parts.append(0 if word == "[" else None)
                expects_key = word == "{"


def _path(parts: list[PathPart | None]) -> tuple[PathPart, ...]:
    return tuple(part for part in parts if part is not None)


def _key(word: str) -> str:
    try:
        return str(json.loads(word))
    except ValueError:
        return word
