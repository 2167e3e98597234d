"""`# orbit: ignore[CODE] reason`: a warning that somebody looked at and accepted.

It counts for its own line, or for the whole workflow where it stands on the workflow's `def` line (or one of
its decorators). Errors cannot be ignored: what forbids publication here is refused by every server too.
"""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbit_sdk.cli.findings import WARNING, Finding

if TYPE_CHECKING:
    from orbit_sdk.builder import Workflow

__all__ = ["Ignores"]

_COMMENT = re.compile(r"#\s*orbit:\s*ignore(?:\[([^\]]*)\])?(.*)")


@dataclass(slots=True)
class _Ignore:
    file: str
    line: int
    column: int
    codes: tuple[str, ...]
    reason: str
    used: set[str] = field(default_factory=set)


class Ignores:
    """The comments of all files that were asked about."""

    def __init__(self) -> None:
        self._by_file: dict[str, dict[int, _Ignore]] = {}

    def kept(self, findings: Sequence[Finding], workflow: Workflow[Any, Any] | None) -> tuple[Finding, ...]:
        """The findings that no comment accepts."""
        heads = () if workflow is None else _head(workflow)
        for file, _ in heads:
            self._of(file)  # a file without findings may hold comments that nothing needs
        return tuple(found for found in findings if not self._accepts(found, heads))

    def findings(self) -> Iterator[Finding]:
        """Comments that accept nothing, or do not say why. Asked after everything else."""
        for _, ignores in sorted(self._by_file.items()):
            for _, ignore in sorted(ignores.items()):
                yield from _about(ignore)

    def _accepts(self, found: Finding, heads: Iterable[tuple[str, int]]) -> bool:
        accepted = False
        here = () if found.file is None or found.line is None else ((found.file, found.line),)
        for file, line in (*here, *heads):
            ignore = self._of(file).get(line)
            if ignore is not None and found.code in ignore.codes and not found.is_error:
                ignore.used.add(found.code)
                accepted = True
        return accepted

    def _of(self, file: str) -> dict[int, _Ignore]:
        known = self._by_file.get(file)
        if known is None:
            known = self._by_file[file] = {each.line: each for each in _comments(file)}
        return known


def _head(workflow: Workflow[Any, Any]) -> tuple[tuple[str, int], ...]:
    """The lines from the first decorator to the one of `def`."""
    code = workflow.function.__code__
    first = code.co_firstlineno
    try:
        lines, _ = inspect.getsourcelines(workflow.function)
    except (OSError, TypeError):
        return ((code.co_filename, first),)
    count = next((n for n, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
    return tuple((code.co_filename, line) for line in range(first, first + count + 1))


def _comments(file: str) -> Iterator[_Ignore]:
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    if "orbit:" not in text:
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            found = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if found is not None:
                codes = tuple(code.strip() for code in (found[1] or "").split(",") if code.strip())
                yield _Ignore(file, token.start[0], token.start[1] + 1, codes, found[2].strip())
    except (tokenize.TokenError, SyntaxError):
        return


def _about(ignore: _Ignore) -> Iterator[Finding]:
    base = Finding("", WARNING, "", None, ignore.file, ignore.line, ignore.column)
    unused = [code for code in ignore.codes if code not in ignore.used]
    if not ignore.codes:
        what = "An ignore names no code."
        yield replace(base, code="IGNORE_UNUSED", message=what, help="Write ignore[CODE] and a reason.")
    elif unused:
        what = f"There is no warning {', '.join(unused)} to ignore here."
        help_ = "Take the comment away; an error can only be corrected."
        yield replace(base, code="IGNORE_UNUSED", message=what, help=help_)
    if not ignore.reason:
        what = "An ignore gives no reason."
        yield replace(
            base, code="IGNORE_REASONLESS", message=what, help="Say after the bracket why it is fine."
        )
