"""Found by every Python process that has this folder on its path: samples it while a file says so.

`ORBIT_SAMPLES` names the folder: sampling runs while `<folder>/on` exists, and what was seen is then written
to `<folder>/<pid>.json`. Each sample charges a thread's CPU time since the last one to its present stack.
"""

# Loaded before anything else, and to cost little.
# ruff: noqa: PTH105, PTH110, PTH118, PTH123

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from typing import Any

PAUSE_S = 0.002
DEPTH = 40


class Sampler:
    """CPU nanoseconds by (thread name, stack); a stack is a tuple of `file:function`, innermost first."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, ...]] = Counter()
        self._last: dict[int, int] = {}

    def sample(self) -> None:
        frames = sys._current_frames()
        for thread in threading.enumerate():
            if thread.ident is None or thread.ident == threading.get_ident():
                continue
            try:
                with open(f"/proc/self/task/{thread.native_id}/schedstat") as file:
                    spent = int(file.read().split()[0])
            except (OSError, ValueError, IndexError):
                continue
            before = self._last.get(thread.ident)
            self._last[thread.ident] = spent
            frame = frames.get(thread.ident)
            if before is not None and spent > before and frame is not None:
                self.seen[thread.name, *_stack(frame)] += spent - before

    def take(self) -> list[Any]:
        """What was seen, as [nanoseconds, thread, stack…], most first; counting begins anew."""
        seen, self.seen, self._last = self.seen, Counter(), {}
        return [[spent, *key] for key, spent in seen.most_common()]


def _stack(frame: Any) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < DEPTH:
        found.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")
        frame = frame.f_back
    return found


def _watch(folder: str) -> None:
    switch = os.path.join(folder, "on")
    sampler = Sampler()
    while True:
        if not os.path.exists(switch):
            if sampler.seen:
                path = os.path.join(folder, f"{os.getpid()}.json")
                with open(path + ".part", "w") as file:
                    json.dump(sampler.take(), file)
                os.replace(path + ".part", path)
            time.sleep(0.05)
            continue
        sampler.sample()
        time.sleep(PAUSE_S)


def start(folder: str) -> int:
    """Sample this process; answers its id."""
    threading.Thread(target=_watch, args=(folder,), name="sampler", daemon=True).start()
    return os.getpid()


def await_files(paths: set[Any], seconds: float = 20.0) -> None:
    """Wait until every process has written down what it saw."""
    until = time.monotonic() + seconds
    while not all(path.exists() for path in paths):
        if time.monotonic() > until:
            raise TimeoutError("a process did not write its samples")
        time.sleep(0.05)


if "ORBIT_SAMPLES" in os.environ:
    start(os.environ["ORBIT_SAMPLES"])
