"""The worker process: socket, slots, leases, re-sending of results, graceful exit."""

from orbit_sdk.worker.report import LeftBehind, WorkerReport
from orbit_sdk.worker.settings import WorkerSettings
from orbit_sdk.worker.worker import Worker

__all__ = ["LeftBehind", "Worker", "WorkerReport", "WorkerSettings"]
