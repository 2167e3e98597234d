"""What a probe found: waited for, and said in a line or two."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from orbit_sdk.cli.shapes import compact
from orbit_sdk.cli.trials import error_of

if TYPE_CHECKING:
    from orbit_sdk.cli.output import Output
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.tasks import TaskDetail

__all__ = ["say_probe", "settled"]

_FIRST_S: Final = 0.05
_LAST_S: Final = 1.0


def settled(client: Orbit, task_id: str) -> TaskDetail:
    """The probe once it has ended; it has time limits of its own, so it does end."""
    pause = _FIRST_S
    while True:
        found = client.tasks.get(task_id)
        if found.settled_at is not None:
            return found
        time.sleep(pause)
        pause = min(2 * pause, _LAST_S)


def say_probe(found: TaskDetail, out: Output) -> None:
    """How it ended, and the answer."""
    out.line(f"probe {found.id}  {found.state}")
    if found.state == "SUCCEEDED":
        out.line(f"  found {compact(found.result)}")
    else:
        out.line(f"  {error_of(found.error) or found.error_code or ''}", "red")
