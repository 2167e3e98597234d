"""What a soak is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class SoakSettings:
    """`seconds`: how long faults are put in; settling and the last checks come on top. `folder` keeps
    everything.
    """

    seconds: float
    database: Literal["sqlite", "mariadb"]
    folder: Path
    seed: int
    workers: int = 6
    clients: int = 3
    check_every: float = 10
    pace: float = 1.2
    """Mean seconds between two faults."""
    settle: float = 180
    """How long everything may take to come to its end once the faults are over."""

    @property
    def servers(self) -> int:
        """SQLite is one process's database."""
        return 1 if self.database == "sqlite" else 3
