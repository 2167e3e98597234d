"""Findings for people: the source line, a caret below it, and what to do, as good compilers show them."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from orbit_sdk.cli.findings import Finding
from orbit_sdk.cli.output import Output, styled

__all__ = ["render"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*|\S")


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
    gutter = len(str(finding.line or 0)) + 1
    where = _where(finding)
    if where:
        yield f"{' ' * gutter}{_dim('-->')} {where}"
    yield from _source(finding, gutter, colour)
    for label, text in [("help", finding.help), *(("note", note) for note in finding.notes)]:
        if text:
            yield f"{' ' * gutter}{_dim('=')} {styled(label, 'cyan', sys.stdout)}: {text}"


def _where(finding: Finding) -> str:
    place = ""
    if finding.file is not None:
        place = ":".join(
            [_relative(finding.file), *(str(n) for n in (finding.line, finding.column) if n is not None)]
        )
    if finding.path not in (None, "$"):
        place += f" ({finding.path})" if place else str(finding.path)
    return place


def _source(finding: Finding, gutter: int, colour: str) -> Iterator[str]:
    if finding.file is None or finding.line is None:
        return
    text = linecache.getline(finding.file, finding.line).rstrip("\n")
    if not text.strip():
        return
    number = str(finding.line).ljust(gutter)
    yield f"{' ' * gutter}{_dim('|')}"
    yield f"{_dim(number + '|')} {text}"
    if finding.column is not None and finding.column >= 1:
        start = min(_characters(text, finding.column - 1), len(text))
        word = _WORD.match(text, start)
        carets = "^" * max(1, len(word.group()) if word else 1)
        lead = "".join("\t" if letter == "\t" else " " for letter in text[:start])
        yield f"{' ' * gutter}{_dim('|')} {lead}{styled(carets, colour, sys.stdout)}"


def _characters(text: str, offset: int) -> int:
    """Python counts columns in bytes of UTF-8; a person sees characters."""
    return len(text.encode()[:offset].decode(errors="ignore"))


def _relative(file: str) -> str:
    try:
        return str(Path(file).resolve().relative_to(Path.cwd()))
    except ValueError:
        return file


def _dim(text: str) -> str:
    return styled(text, "blue", sys.stdout)
