"""Child processes that never outlive their parent: stopped in order, and killed by pid when they hang."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

__all__ = ["Child", "Children"]

_LOOK_S = 0.05


@dataclass(slots=True)
class Child:
    """One `orbit` command as a process of its own.

    It has a session of its own, so that Ctrl-C in the terminal reaches the parent only, which then stops its
    children in order. `log`: where its standard error goes; None is that of the parent.
    """

    name: str
    arguments: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    speaks: bool = False
    """Whether the parent reads what it prints; otherwise that goes where the parent's goes."""
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it (again)."""
        command = [sys.executable, "-m", "orbit_sdk.cli.child", *self.arguments]
        errors = None if self.log is None else self.log.open("ab")
        try:
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **self.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if self.speaks else None,
                stderr=errors,
                start_new_session=True,
            )
        finally:
            if errors is not None:
                errors.close()

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return None if self.process is None else self.process.poll()

    def said(self, seconds: float) -> Any:
        """The first JSON document it prints; None when it ends or the time is over without one."""
        assert self.process is not None
        assert self.process.stdout is not None
        until, found = time.monotonic() + seconds, b""
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                return None
            found += part
            with suppress(ValueError):  # not the whole of it yet
                return json.loads(found)

    def stop(self, grace: float, hurry: Callable[[], bool]) -> None:
        """Ask it to leave; kill it when the grace (seconds) is over or somebody is in a hurry."""
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + grace
        while process.poll() is None and time.monotonic() < until and not hurry():
            time.sleep(_LOOK_S)
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        self.process = None

    def last_words(self, lines: int = 15) -> str:
        """The end of its log."""
        if self.log is None or not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@dataclass(slots=True)
class Children:
    """All children of this process; leaving the block ends them, the youngest first."""

    grace: float
    all: list[Child] = field(default_factory=list)
    hurried: bool = False

    def start(self, child: Child) -> Child:
        self.all.append(child)
        child.start()
        return child

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self.all):
            child.stop(self.grace, lambda: self.hurried)
