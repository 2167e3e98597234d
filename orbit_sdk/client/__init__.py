"""The client of Orbit's HTTP interface: `OrbitClient` (async) and its generated twin `Orbit` (sync)."""

from orbit_sdk.client._async.client import OrbitClient
from orbit_sdk.client._async.handle import Handle
from orbit_sdk.client._sync.client import Orbit
from orbit_sdk.client._sync.handle import SyncHandle
from orbit_sdk.client.outcomes import NeedsReview, NotFinished, WorkflowCancelled, WorkflowFailed
from orbit_sdk.client.settings import ClientSettings
from orbit_sdk.client.submission import Submission

__all__ = [
    "ClientSettings",
    "Handle",
    "NeedsReview",
    "NotFinished",
    "Orbit",
    "OrbitClient",
    "Submission",
    "SyncHandle",
    "WorkflowCancelled",
    "WorkflowFailed",
]
