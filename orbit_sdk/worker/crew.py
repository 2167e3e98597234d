"""The threads that `def` handlers run in: as many as there are slots, made when needed.

They are daemons on purpose: a handler that never returns keeps its thread, but neither the process nor, once
somebody has given it up, its slot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

__all__ = ["Crew"]

Job = Callable[[], None]


class Crew:
    """Runs jobs that never raise. Owned by one thread that submits and closes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._surplus: set[int] = set()
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        """Run the job in a thread; waits only if more jobs than slots are given."""
        with self._lock:
            grow = self._idle == 0 and self._threads < self._size
            if grow:
                self._threads += 1
            else:
                self._idle -= 1
            number = self._threads
        self._jobs.put(job)
        if grow:
            threading.Thread(target=self._work, name=f"orbit-handler-{number}", daemon=True).start()

    def replace_one(self) -> None:
        """One of the threads is given up for lost: another may take its place. `restore` undoes that."""
        with self._lock:
            self._size += 1

    def restore(self) -> None:
        """To be called on a thread that was replaced, by its job: it ends with it."""
        with self._lock:
            self._size -= 1
            self._surplus.add(threading.get_ident())

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                if threading.get_ident() in self._surplus:
                    self._surplus.discard(threading.get_ident())
                    self._threads -= 1
                    return
                self._idle += 1

    def close(self) -> None:
        """Let idle threads end; a busy one ends when its job does."""
        for _ in range(self._threads):
            self._jobs.put(None)
