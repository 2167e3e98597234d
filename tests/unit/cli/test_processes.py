"""Ports and children of `orbit dev`, with real sockets and processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orbit_sdk.cli.dev.children import Child, Children
from orbit_sdk.cli.dev.ports import holder_of, is_free
from tests.unit.cli.apps import write

STUBBORN = """\
import signal, sys, time
import orbit_sdk as orbit
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('"up"', flush=True)
time.sleep(600)
"""


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_port_in_use_is_not_free_and_names_its_holder(taken: int) -> None:
    assert not is_free("127.0.0.1", taken)
    holder = holder_of(taken)
    assert holder is not None
    assert holder[0] == os.getpid()
    assert holder[1]


def test_a_port_that_nobody_holds_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    assert is_free("127.0.0.1", port)
    assert holder_of(port) is None


def test_a_child_that_ignores_the_request_to_stop_is_killed(folder: Path) -> None:
    write(folder, stubborn=STUBBORN)
    with Children(grace=0.2) as children:
        child = children.start(Child("stubborn", ["check", "stubborn.py"], speaks=True))
        assert child.said(60) == "up"
        pid = child.pid
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_a_child_says_is_none_when_it_ends_without_a_word(folder: Path) -> None:
    with Children(grace=1) as children:
        child = children.start(Child("mute", ["nonsense"], log=folder / "log", speaks=True))
        assert child.said(60) is None
    assert "No such command" in child.last_words()


def test_a_child_ends_when_its_parent_is_killed(folder: Path) -> None:
    write(folder, waiting="import time\nimport orbit_sdk\nprint('\"up\"', flush=True)\ntime.sleep(600)\n")
    code = (
        "from orbit_sdk.cli.dev.children import Child\n"
        "child = Child('waiting', ['check', 'waiting.py'], speaks=True)\n"
        "child.start()\n"
        "assert child.said(60) == 'up'\n"
        "print(child.pid, flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 60
    while time.monotonic() < until and _alive(pid):
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
