"""Real databases for tests: files for SQLite, private MariaDB servers.

A server here has its own data folder, its own free port on the loopback address and no configuration
file; it is started by the test run and ended by its process id, so a server that already runs on the
machine is never seen, used or stopped.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pymysql

from tools.find_mariadbd import WITHOUT, find

USER: Final = "orbit"
START_SECONDS: Final = 60.0
START_ATTEMPTS: Final = 5
STOP_SECONDS: Final = 30.0

BASE_OPTIONS: Final = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--skip-slave-start",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_bin",
    "--max-connections=300",
    "--max-allowed-packet=64M",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=64M",
    "--performance-schema=OFF",
)
# What a commit promises is only as good as the log flush behind it.
DURABLE_OPTIONS: Final = ("--innodb-flush-log-at-trx-commit=1",)
# Such a server is never killed in a test, so nothing depends on what reached the disk.
FAST_OPTIONS: Final = (
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-file-per-table=0",
)


class MariaDbMissing(RuntimeError):
    """There is no MariaDB server program on this machine."""


class MariaDb:
    """One private MariaDB server.

    `folder` must exist and be empty at first; it survives `kill` and `stop`, so that `start` finds the
    data again, on the same port. `durable=False` trades safety for speed: never kill such a server.
    """

    def __init__(self, folder: Path, *, durable: bool = True, options: Sequence[str] = ()) -> None:
        self.folder = folder
        self.port = free_port()
        self._options = (*BASE_OPTIONS, *(DURABLE_OPTIONS if durable else FAST_OPTIONS), *options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        if self._process is None:
            raise RuntimeError("the MariaDB server is not running")
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything the server has written to its error log."""
        path = self.folder / "error.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start (or start again) and wait until the server answers."""
        if self._process is not None:
            raise RuntimeError("the MariaDB server is already running")
        data = self.folder / "data"
        first = not data.exists()
        if first:
            self._install(data)
        self._process = self._spawn(data)
        attempts = 1
        while not self._await_answer():
            self._process = None
            # Another program can take a free port between the look and the bind.
            if attempts == START_ATTEMPTS or "Address already in use" not in self.log:
                raise RuntimeError(f"the MariaDB server did not start:\n{self.log[-4000:]}")
            attempts += 1
            if first:
                self.port = free_port()
            (self.folder / "error.log").unlink()
            self._process = self._spawn(data)

    def stop(self) -> None:
        """End the server in an orderly way. Nothing happens when it is not running."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a power cut would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def create_database(self) -> str:
        """A new, empty database; answers its URL."""
        name = f"orbit_{secrets.token_hex(8)}"
        self.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        return f"mysql://{USER}@127.0.0.1:{self.port}/{name}"

    def drop_database(self, url: str) -> None:
        """Remove a database made by `create_database`, ending whoever still holds locks in it."""
        name = urlsplit(url).path.lstrip("/")
        sessions = self.execute("SELECT id FROM information_schema.processlist WHERE db = %s", name)
        for (session,) in sessions:
            self._end_session(session)
        self.execute(f"DROP DATABASE IF EXISTS {name}")

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own; answers all rows."""
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def _end_session(self, session: int) -> None:
        try:
            self.execute(f"KILL {int(session)}")
        except pymysql.err.OperationalError as error:
            if error.args[0] != 1094:  # it ended by itself meanwhile
                raise

    def _connect(self) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=USER, autocommit=True, connect_timeout=5
        )

    def _install(self, data: Path) -> None:
        program = find("mariadb-install-db")
        if program is None:
            raise MariaDbMissing("mariadb-install-db is missing")
        # Two servers that share a temporary folder delete each other's files.
        (self.folder / "tmp").mkdir(exist_ok=True)
        done = subprocess.run(
            [
                program,
                "--no-defaults",
                f"--datadir={data}",
                f"--tmpdir={self.folder / 'tmp'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
                *_as_this_user(),
            ],
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            shutil.rmtree(data, ignore_errors=True)
            raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout.decode()}{done.stderr.decode()}")
        (self.folder / "init.sql").write_text(
            f"CREATE USER IF NOT EXISTS {USER}@'127.0.0.1';\n"
            f"GRANT ALL PRIVILEGES ON *.* TO {USER}@'127.0.0.1';\n"
        )

    def _spawn(self, data: Path) -> subprocess.Popen[bytes]:
        program = find("mariadbd")
        if program is None:
            raise MariaDbMissing("mariadbd is missing")
        return subprocess.Popen(
            [
                program,
                "--no-defaults",
                f"--datadir={data}",
                f"--tmpdir={self.folder / 'tmp'}",
                f"--port={self.port}",
                f"--socket={self.folder / 'socket'}",
                f"--pid-file={self.folder / 'pid'}",
                f"--log-error={self.folder / 'error.log'}",
                f"--init-file={self.folder / 'init.sql'}",
                *_as_this_user(),
                *self._options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_dying_with_parent(),  # noqa: PLW1509  # one system call, takes no lock
        )

    def _await_answer(self) -> bool:
        """True when the server answers, False when it has ended."""
        process = self._process
        assert process is not None
        limit = time.monotonic() + START_SECONDS
        while time.monotonic() < limit:
            if process.poll() is not None:
                return False
            try:
                self.execute("SELECT 1")
            except (pymysql.err.Error, OSError):
                time.sleep(0.02)
            else:
                # Another server could hold the port: only an answer of our own data folder counts.
                ((folder,),) = self.execute("SELECT @@datadir")
                if Path(str(folder)).resolve() == (self.folder / "data").resolve():
                    return True
                time.sleep(0.02)
        process.kill()
        process.wait()
        return False

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A TCP port of the loopback address that nobody uses at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def may_do_without_mariadb() -> bool:
    """Whether this run was told to leave out what needs MariaDB, on a machine that has none."""
    return find() is None and os.environ.get(WITHOUT) == "1"


@contextmanager
def running_mariadb(folder: Path, *, durable: bool = True, options: Sequence[str] = ()) -> Iterator[MariaDb]:
    """A private server for the length of the block; its folder is emptied afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    server = MariaDb(folder, durable=durable, options=options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def sqlite_url(folder: Path) -> str:
    """URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{folder / f'orbit-{secrets.token_hex(4)}.db'}"


def _as_this_user() -> list[str]:
    # MariaDB refuses to run as root unless it is told so by name.
    return ["--user=root"] if os.geteuid() == 0 else []


def _dying_with_parent() -> Callable[[], None] | None:
    """What makes a server end with the test process, however that ends. Linux only."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG

    def prepare() -> None:
        libc.prctl(set_parent_death_signal, signal.SIGKILL)

    return prepare
