"""How a count is shown."""

from __future__ import annotations

from typing import Any

from orbit_server.storage.lists import Tally


def count_view(tally: Tally) -> dict[str, Any]:
    """A count as `protocol.common.Count`."""
    groups = [
        {"count": number} if key is None else {"key": key, "count": number} for key, number in tally.groups
    ]
    return {
        "total": tally.total,
        "complete": tally.complete,
        "groups": groups,
        "more_groups": tally.more,
    }
