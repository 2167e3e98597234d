"""How a signal is shown: its receipt, without the body."""

from __future__ import annotations

import orjson

from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.weave.state.signals import SignalRow


def signal_view(row: SignalRow) -> dict[str, Json]:
    """`protocol.workflows.Signal` as JSON."""
    shown: dict[str, Json] = {
        "id": row.id,
        "workflow_id": row.instance_id,
        "signal": row.signal,
        "match": orjson.loads(row.match_key),
        "state": row.state.value,
        "revision": str(row.revision),
        "accepted_at": to_rfc3339(row.accepted_at),
    }
    if row.expires_at is not None:
        shown["expires_at"] = to_rfc3339(row.expires_at)
    for name in ("disposition", "step_key", "consumed_wait_id"):
        value = getattr(row, name)
        if value is not None:
            shown[name] = value
    return shown
