"""What `orbit` says when it is asked nothing: the next thing to do here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from orbit_sdk.cli.output import Output
from orbit_sdk.cli.profile import find_profile

_LOOKED_AT = 200
_HEAD_BYTES = 65_536

Rows = Sequence[tuple[str, str]]


def welcome(out: Output) -> None:
    """Three or four commands that make sense in this folder."""
    out.line("Orbit runs work that must not be lost and must not be done twice by accident.", "bold")
    out.line()
    profile = find_profile()
    app = _an_app(Path.cwd())
    if profile is not None:
        known, folder = profile
        out.line(f"This folder has a server: {known.url} (data in {folder / '.orbit'})")
        rows: Rows = [
            (f"orbit dev {app or ''}".rstrip(), "start it again, when it does not run"),
            ("orbit list", "the newest workflows"),
            ("orbit review list", "what waits for a person"),
        ]
    elif app is not None:
        rows = [
            (f"orbit check {app}", "check its workflows, without any server"),
            (f"orbit dev {app}", "a server with an embedded database, and a worker for it"),
        ]
    else:
        rows = [
            ("orbit init shop", "a small project that works, to start from"),
            ("orbit dev app.py", "a server with an embedded database, and a worker for app.py"),
            ("orbit check app.py", "check its workflows, without any server"),
        ]
    _show(out, [*rows, ("orbit --help", "every command")])


def _show(out: Output, rows: Iterable[tuple[str, str]]) -> None:
    shown = list(rows)
    width = max(len(name) for name, _ in shown)
    for name, what in shown:
        out.line(f"  {name.ljust(width)}   {what}")


def _an_app(folder: Path) -> str | None:
    """A Python file here that declares a workflow."""
    for number, path in enumerate(sorted(folder.glob("*.py"))):
        if number >= _LOOKED_AT:
            break
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            continue
        if b"orbit_sdk" in head and b"workflow(" in head:
            return path.name
    return None
