"""What a worker has done, in figures: for its health page while it runs, for its exit report at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from orbit_sdk.values.json_strict import Json

__all__ = ["Figures", "LeftBehind", "WorkerReport"]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """An attempt that this worker did not bring to an end. `how`: RUNNING (its handler goes on, its lease is
    left to run out), UNSETTLED (its result was not acknowledged) or STUCK (its lease is gone, its handler
    still runs).
    """

    task_id: str
    attempt_id: str
    handler: str
    how: str


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """What `Worker.run` answers. `outcomes`: results by what they said; `lost`: attempts whose lease ended
    first; `replaced`: threads that were given up for lost; `sessions`: connections that were greeted.
    """

    worker: str
    build: str
    sessions: int
    outcomes: dict[str, int]
    lost: int
    replaced: int
    left: tuple[LeftBehind, ...]

    @property
    def clean(self) -> bool:
        """Nothing was left behind."""
        return not self.left

    def json(self) -> dict[str, Json]:
        """For machines to read."""
        left: list[Json] = [
            {"task_id": one.task_id, "attempt_id": one.attempt_id, "handler": one.handler, "how": one.how}
            for one in self.left
        ]
        return {
            "worker": self.worker,
            "build": self.build,
            "sessions": self.sessions,
            "outcomes": dict(self.outcomes),
            "lost": self.lost,
            "replaced": self.replaced,
            "left": left,
        }

    def lines(self) -> Iterator[str]:
        """For people to read."""
        done = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items()))
        yield f"results: {done or 'none'}; leases lost: {self.lost}; threads replaced: {self.replaced}"
        for one in self.left:
            yield f"left behind: {one.handler}, task {one.task_id}, attempt {one.attempt_id} ({one.how})"


@dataclass(slots=True)
class Figures:
    """Counts since the start. Written by the uplink's thread alone."""

    sessions: int = 0
    lost: int = 0
    replaced: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
