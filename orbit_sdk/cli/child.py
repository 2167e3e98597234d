"""`python -m orbit_sdk.cli.child …`: the command line as a child that ends when its parent does.

Its standard input is a pipe that the parent holds open and never writes to: the end of it means that the
parent is gone, however it went.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Final

__all__ = ["main"]

ORPHAN_GRACE_S: Final = 10.0


def main() -> None:
    """Watch over the parent, and be the `orbit` command meanwhile."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # handlers that read standard input must not read the pipe
    os.close(nothing)
    threading.Thread(target=_watch, args=(pipe,), name="parent", daemon=True).start()
    from orbit_sdk.cli import main as orbit

    orbit()


def _watch(pipe: int) -> None:
    while os.read(pipe, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    sys.argv[0] = "orbit"
    main()
