"""Declarations of business handlers: what a worker runs, a workflow calls and a check reads."""

from orbit_sdk.handlers.context import TaskContext, TaskLog
from orbit_sdk.handlers.contracts import Contract, contract
from orbit_sdk.handlers.declaration import Handler, RunIn, handler
from orbit_sdk.handlers.errors import (
    Cancelled,
    Effect,
    Final,
    HandBack,
    LeaseLost,
    NeedsPerson,
    NeedsVerification,
    Retryable,
    Stopped,
    TaskError,
)
from orbit_sdk.handlers.markers import FileRef, SecretRef, Sensitive
from orbit_sdk.handlers.options import Failure, Guide, Retry, StepOptions
from orbit_sdk.handlers.problems import BuildError, Place, Problem
from orbit_sdk.handlers.recovery import Recovery
from orbit_sdk.handlers.registry import Registry
from orbit_sdk.handlers.verdicts import CannotHappenAnyMore, CannotTell, Happened, Verdict

__all__ = [
    "BuildError",
    "Cancelled",
    "CannotHappenAnyMore",
    "CannotTell",
    "Contract",
    "Effect",
    "Failure",
    "FileRef",
    "Final",
    "Guide",
    "HandBack",
    "Handler",
    "Happened",
    "LeaseLost",
    "NeedsPerson",
    "NeedsVerification",
    "Place",
    "Problem",
    "Recovery",
    "Registry",
    "Retry",
    "Retryable",
    "RunIn",
    "SecretRef",
    "Sensitive",
    "StepOptions",
    "Stopped",
    "TaskContext",
    "TaskError",
    "TaskLog",
    "Verdict",
    "contract",
    "handler",
]
