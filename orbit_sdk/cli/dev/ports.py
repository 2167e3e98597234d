"""Whether a port is free, and who holds it when it is not."""

from __future__ import annotations

import errno
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["Holder", "holder_of", "is_free"]

_LISTENING = "0A"
_SHOWN = 80

Holder = tuple[int, str]
"""Process id and command."""


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def holder_of(port: int) -> Holder | None:
    """The process that listens on a port of this machine; None when it cannot be seen."""
    if Path("/proc/net/tcp").exists():
        return _from_proc(port)
    return _from_lsof(port)


def _from_proc(port: int) -> Holder | None:
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    if not sockets:
        return None
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        if not sockets.isdisjoint(_held(process)):
            try:
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            return int(process.name), _shorten(" ".join(words).strip())
    return None


def _held(process: Path) -> Iterator[str]:
    """What a process has open. Processes and descriptors may go at any moment, or be somebody else's."""
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(descriptor.readlink())


def _inodes(port: int) -> Iterator[str]:
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            parts = line.split()
            if parts[3] == _LISTENING and int(parts[1].rpartition(":")[2], 16) == port:
                yield parts[9]


def _from_lsof(port: int) -> Holder | None:
    program = shutil.which("lsof")
    if program is None:
        return None
    done = subprocess.run(
        [program, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fpc"], capture_output=True, text=True, check=False
    )
    found = {line[:1]: line[1:] for line in done.stdout.splitlines()}
    return (int(found["p"]), _shorten(found.get("c", "?"))) if "p" in found else None


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
