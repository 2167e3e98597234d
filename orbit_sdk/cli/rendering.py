"""Findings for people: the source line, a caret below it, and what to do, as good compilers show them."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator, Sequence

from orbit_sdk.cli.findings import Finding, Spot, relative
from orbit_sdk.cli.output import Output, styled

__all__ = ["render"]

_LONGEST = 160
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9.]*|\S')


def render(findings: Sequence[Finding], out: Output) -> None:
    """Each finding with its place, then nothing: the summary is the command's."""
    for finding in findings:
        for line in _lines(finding):
            out.line(line)
        out.line()


def _lines(finding: Finding) -> Iterator[str]:
    colour = "red" if finding.is_error else "yellow"
    head = styled(f"{finding.severity}[{finding.code}]", colour, sys.stdout)
    yield f"{head}: {styled(finding.message, 'bold', sys.stdout)}"
    places = [finding.line, *(spot.line for spot in finding.related)]
    gutter = max(len(str(line or 0)) for line in places) + 1
    where = _where(finding, finding.path)
    if where:
        yield f"{' ' * gutter}{_dim('-->')} {where}"
    yield from _source(finding, gutter, colour)
    for spot in finding.related:
        if spot.line is None or spot.file is None:
            yield f"{' ' * gutter}{_dim('=')} {styled('note', 'cyan', sys.stdout)}: {spot.path}: {spot.note}"
        else:
            yield f"{' ' * gutter}{_dim(':::')} {_where(spot, None)} {styled(spot.note, 'cyan', sys.stdout)}"
            yield from _source(spot, gutter, "cyan")
    if finding.help:
        yield f"{' ' * gutter}{_dim('=')} {styled('help', 'cyan', sys.stdout)}: {finding.help}"


def _where(at: Finding | Spot, path: str | None) -> str:
    place = ""
    if at.file is not None:
        numbers = (str(n) for n in (at.line, at.column) if n is not None)
        place = ":".join([relative(at.file), *numbers])
    if path not in (None, "$"):
        place += f" ({path})" if place else str(path)
    return place


def _source(at: Finding | Spot, gutter: int, colour: str) -> Iterator[str]:
    if at.file is None or at.line is None:
        return
    text = linecache.getline(at.file, at.line).rstrip("\n")
    if not text.strip():
        return
    start = None if at.column is None or at.column < 1 else min(_characters(text, at.column - 1), len(text))
    text, start = _window(text, start)
    number = str(at.line).ljust(gutter)
    yield f"{' ' * gutter}{_dim('|')}"
    yield f"{_dim(number + '|')} {text}"
    if start is not None:
        word = _WORD.match(text, start)
        carets = "^" * max(1, len(word.group()) if word else 1)
        lead = "".join("\t" if letter == "\t" else " " for letter in text[:start])
        yield f"{' ' * gutter}{_dim('|')} {lead}{styled(carets, colour, sys.stdout)}"


def _window(text: str, start: int | None) -> tuple[str, int | None]:
    """A line as far as it can be looked at, such as one that holds a whole document."""
    if len(text) <= _LONGEST:
        return text, start
    left = max(0, (start or 0) - _LONGEST // 3)
    head, tail = "…" if left else "", "…" if left + _LONGEST < len(text) else ""
    shown = head + text[left : left + _LONGEST] + tail
    return shown, None if start is None else start - left + len(head)


def _characters(text: str, offset: int) -> int:
    """Python counts columns in bytes of UTF-8; a person sees characters."""
    return len(text.encode()[:offset].decode(errors="ignore"))


def _dim(text: str) -> str:
    return styled(text, "blue", sys.stdout)
