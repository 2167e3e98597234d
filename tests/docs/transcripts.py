"""Plays a page: its Python becomes a file, its commands are run, and what they say is compared.

In a console block, a line `$ …` is a command and what follows is its output. An output that ends with `…`
belongs to a command that keeps running; a block that begins with `…` goes on with it. `orbit dev` runs
until the next one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 60
MORE = "…"

_CHANGING = (
    (re.compile(r"\borbit_[0-9a-f]{8,}…?"), "TOKEN"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min)\b( \d+ s\b)?"), "TOOK"),
    (re.compile(r"\s+"), " "),
)


def lines_of(text: str) -> list[str]:
    """What a reader compares: without what differs from run to run, and without empty lines."""
    found = []
    for shown in text.splitlines():
        line = shown
        for pattern, word in _CHANGING:
            line = pattern.sub(word, line)
        if line.strip():
            found.append(line.strip())
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; `line` is where its fence stands."""

    language: str
    text: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """(command, shown output); the command is empty where a block goes on with an earlier one."""
    command, shown = "", ""
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            if command or shown:
                yield command, shown
            command, shown = line[2:].strip(), ""
        else:
            shown += line
    yield command, shown


@dataclass(slots=True)
class Running:
    """A command that keeps running, and how much of its output was compared."""

    process: subprocess.Popen[bytes]
    output: Path
    compared: int = 0

    def read_until(self, shown: list[str], where: str) -> None:
        """Wait until each shown line has come, in this order. Lines in between are passing states."""
        until = time.monotonic() + PATIENCE_S
        while True:
            ended = self.process.poll() is not None
            said = lines_of(self.output.read_text())
            at = _after(said, shown, self.compared)
            if at is not None:
                self.compared = at
                return
            heard = "\n".join(said)
            assert not ended, f"{where}: it ended without saying {shown}\nbut said\n{heard}"
            assert time.monotonic() < until, f"{where}: it did not say {shown}\nbut said\n{heard}"
            _wait_a_moment(self.process)


def _wait_a_moment(process: subprocess.Popen[bytes]) -> None:
    """Give the process a moment, or less when it ends."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return


def _after(said: list[str], shown: list[str], start: int) -> int | None:
    at = start
    for line in shown:
        try:
            at = said.index(line, at) + 1
        except ValueError:
            return None
    return at


@dataclass(slots=True)
class Reader:
    """Somebody who follows a page word by word in an empty folder."""

    folder: Path
    file: str = "app.py"
    server: Running | None = None
    watching: Running | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("ORBIT_")}
        self.environment = {**own, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def follow(self, page: Path) -> None:
        blocks = blocks_of(page)
        code = [block.text.strip() for block in blocks if block.language == "python"]
        (self.folder / self.file).write_text("\n\n\n".join(code) + "\n")
        try:
            for block in blocks:
                where = f"{page.name}:{block.line}"
                if block.language == "diff":
                    self._change(block.text, where)
                elif block.language == "console":
                    for command, shown in commands_of(block):
                        self._run(command, shown, f"{where}: {command or MORE}")
        finally:
            self._leave()

    def _change(self, text: str, where: str) -> None:
        file = self.folder / self.file
        old = "".join(line[1:] for line in text.splitlines(keepends=True) if line.startswith("-"))
        new = "".join(line[1:] for line in text.splitlines(keepends=True) if line.startswith("+"))
        before = file.read_text()
        assert before.count(old) == 1, f"{where}: {old!r} is not in the file exactly once"
        file.write_text(before.replace(old, new))

    def _run(self, command: str, shown: str, where: str) -> None:
        expected = lines_of(shown)
        stays = expected[-1:] == [MORE]
        expected = expected[:-1] if stays else expected
        if command.startswith("orbit dev"):
            self._stop_server()
            self.server = self._start(f"{command} --port 0 --lease 2s")
            self.server.read_until(expected, where)
        elif not command:
            assert expected[0] == MORE, where
            assert self.watching is not None, where
            self._watch(self.watching, expected[1:], where, stays=stays)
        elif stays or command.startswith("orbit watch"):
            self._watch(self._start(command), expected, where, stays=stays)
        else:
            assert self._said(command) == expected, where

    def _watch(self, running: Running, shown: list[str], where: str, *, stays: bool) -> None:
        self.watching = running
        running.read_until(shown, where)
        if not stays:
            running.process.wait(PATIENCE_S)
            self.watching = None

    def _said(self, command: str) -> list[str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return lines_of(done.stdout)

    def _start(self, command: str) -> Running:
        handle, name = tempfile.mkstemp(prefix="said-", dir=self.folder.parent)
        with os.fdopen(handle, "wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder,
                env={**self.environment, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return Running(process, Path(name))

    def _stop_server(self) -> None:
        if self.server is not None:
            self.server.process.send_signal(signal.SIGINT)  # Ctrl-C
            assert self.server.process.wait(PATIENCE_S) == 0
            self.server.read_until(["stopped"], "Ctrl-C")
            self.server = None

    def _leave(self) -> None:
        for running in (self.watching, self.server):
            if running is not None and running.process.poll() is None:
                running.process.terminate()
                running.process.wait(PATIENCE_S)
