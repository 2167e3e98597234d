"""`orbit dev --reload`: when a file changes, check again, publish what is new, start the worker anew.

Everything happens in processes of their own, so the new files are read as a fresh start reads them. What
does not pass the check changes nothing, and a version that is published is never published otherwise.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orbit_sdk.cli.modules import split_target

__all__ = ["Change", "Files", "check_again", "say"]

_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})
_MOST_FILES: Final = 5_000
_TIMEOUT_S: Final = 120.0

Snapshot = Mapping[Path, tuple[int, int]]
"""By file: when it was written (nanoseconds) and how long it is."""


@dataclass(slots=True)
class Files:
    """The Python files beside the targets, and how they looked last."""

    roots: tuple[Path, ...]
    seen: Snapshot = field(default_factory=dict)
    _moving: Snapshot | None = None

    @classmethod
    def of(cls, targets: Sequence[str]) -> Files:
        """The folders of the targets, looked at once."""
        found = cls(tuple(sorted({root for target in targets if (root := _root(target)) is not None})))
        found.seen = found.look()
        return found

    def changed(self) -> list[Path]:
        """What changed since the last answer, once it stands still; else nothing."""
        now = self.look()
        if now == self.seen:
            self._moving = None
            return []
        if now != self._moving:
            self._moving = now
            return []
        before, self.seen, self._moving = self.seen, now, None
        return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))

    def look(self) -> Snapshot:
        """How the files are now; no more than the first 5,000 of them."""
        found: dict[Path, tuple[int, int]] = {}
        for root in self.roots:
            for folder, folders, names in os.walk(root):
                folders[:] = sorted(one for one in folders if not one.startswith(".") and one not in _SKIPPED)
                for name in names:
                    if name.endswith((".py", ".json")) and len(found) < _MOST_FILES:
                        _add(found, Path(folder, name))
        return found


@dataclass(frozen=True, slots=True)
class Change:
    """What became of a change. `ok`: the definitions are sound, and the worker shall start anew."""

    ok: bool
    said: tuple[str, ...]
    data: Mapping[str, Any] = field(default_factory=dict)


def check_again(targets: Sequence[str], url: str, token: str, *, publish: bool) -> Change:
    """Check the targets in a process of its own, and publish what is new."""
    command = [sys.executable, "-m", "orbit_sdk.cli", *(("publish",) if publish else ("check",))]
    command += [*targets, "--json", *(("--current",) if publish else ())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "ORBIT_URL": url, "ORBIT_TOKEN": token},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Change(ok=False, said=("the check does not come to an end; nothing was changed",))
    try:
        data = json.loads(done.stdout)
    except ValueError:
        words = tuple(done.stderr.strip().splitlines()[-5:])
        return Change(ok=False, said=("the check did not work; nothing was changed", *words))
    if "items" in data:
        return Change(ok=True, said=tuple(_of_answer(one) for one in data["items"]), data=data)
    findings = [one for each in data.get("workflows", []) for one in each["findings"]]
    refused = [one for one in findings if one.get("severity") == "ERROR"]
    if not refused and done.returncode == 0:
        return Change(ok=True, said=("sound",), data=data)
    lines = [_of_finding(one) for one in refused or findings]
    return Change(
        ok=False, said=(*lines, "not sound: the worker and what is published stay as they were"), data=data
    )


def _of_answer(answer: Mapping[str, Any]) -> str:
    name = f"{answer['definition_id']} version {answer['version']}"
    if answer["outcome"] != "changed":
        return f"{name} is published"
    return (
        f"{name} is published with other content, and left so: "
        f"set version={answer['version'] + 1} to try the change"
    )


def _of_finding(finding: Mapping[str, Any]) -> str:
    where = ":".join(str(finding[part]) for part in ("file", "line", "column") if finding.get(part))
    instead = f" ({finding['help']})" if finding.get("help") else ""
    return f"{where}: {finding.get('code')}: {finding.get('message')}{instead}"


def say(change: Change, changed: Sequence[Path]) -> Iterator[str]:
    """What people read."""
    names = ", ".join(path.name for path in changed[:3]) + (" and more" if len(changed) > 3 else "")
    yield f"{names} changed"
    yield from (f"  {line}" for line in change.said)


def _root(target: str) -> Path | None:
    """The folder to watch for a target: that of the file, the folder itself, or that of the package."""
    path = Path(split_target(target)[0])
    if path.is_dir():
        return path.resolve()
    if path.suffix in (".py", ".json") or "/" in target:
        return path.resolve().parent
    try:
        spec = importlib.util.find_spec(str(path).partition(".")[0])
    except (ImportError, ValueError):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).resolve().parent


def _add(found: dict[Path, tuple[int, int]], path: Path) -> None:
    try:
        seen = path.stat()
    except OSError:  # gone again
        return
    found[path] = (seen.st_mtime_ns, seen.st_size)
