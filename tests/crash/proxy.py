"""A small TCP proxy on the loopback address that cuts, stalls, or cuts exactly around a COMMIT."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

COMMIT = b"\x03COMMIT"
"""A query packet of the MySQL protocol that says COMMIT."""


class Cut(Enum):
    BEFORE = "before"
    """The COMMIT never reaches the database."""
    AFTER = "after"
    """The COMMIT reaches the database; its answer never comes back."""


class Proxy:
    """Forwards connections to one address. All methods may be called from any thread."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.commits_cut = 0
        self._cut_commits: list[Cut] = []
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    # --- what a test may do ---

    def cut_all(self) -> int:
        """End every connection at once, without a goodbye."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            _reset(*pair)
        return len(pairs)

    def stall(self) -> None:
        """Bytes stop moving; connections stay open."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def cut_next_commit(self, how: Cut, times: int = 1) -> None:
        with self._lock:
            self._cut_commits += [how] * times

    def close(self) -> None:
        self._closed = True
        self._flowing.set()
        # Waking a thread that accepts takes more than closing its socket.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    # --- threads ---

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, timeout=5)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            pair = (client, server)
            with self._lock:
                self._pairs.add(pair)
            threading.Thread(target=self._copy, args=(pair, client, server, True), daemon=True).start()
            threading.Thread(target=self._copy, args=(pair, server, client, False), daemon=True).start()

    def _copy(
        self,
        pair: tuple[socket.socket, socket.socket],
        source: socket.socket,
        sink: socket.socket,
        asking: bool,
    ) -> None:
        try:
            while data := source.recv(65536):
                self._flowing.wait()
                how = self._cut_for(data) if asking else None
                if how is Cut.BEFORE:
                    break
                if how is Cut.AFTER:
                    # The answer is thrown away: nobody copies it once the client's side is gone.
                    _reset(pair[0])
                    sink.sendall(data)
                    with contextlib.suppress(OSError):
                        sink.settimeout(1)
                        sink.recv(1)
                    break
                sink.sendall(data)
        except OSError:
            pass
        with self._lock:
            self._pairs.discard(pair)
        _reset(*pair)

    def _cut_for(self, data: bytes) -> Cut | None:
        if COMMIT not in data:
            return None
        with self._lock:
            if not self._cut_commits:
                return None
            self.commits_cut += 1
            return self._cut_commits.pop(0)


def _reset(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            one.close()


@contextmanager
def proxy(target: tuple[str, int]) -> Iterator[Proxy]:
    """A proxy for the length of the block."""
    built = Proxy(target)
    try:
        yield built
    finally:
        built.close()
