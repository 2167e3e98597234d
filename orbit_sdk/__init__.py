"""Orbit's SDK: typed workflows, handlers, the worker, the client and the `orbit` command.

Names are loaded when they are first used, so that `import orbit_sdk` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orbit_sdk.builder import (
        Case,
        Compiled,
        Instance,
        Signal,
        SignalMatch,
        SignalMeta,
        Workflow,
        all_of,
        any_of,
        branch,
        build,
        fail,
        instance,
        is_in,
        is_null,
        match,
        not_,
        otherwise,
        parallel,
        parallel_each,
        poll,
        sleep,
        text,
        when,
        when_some,
        workflow,
    )
    from orbit_sdk.errors import OrbitError
    from orbit_sdk.handlers import (
        BuildError,
        Cancelled,
        CannotHappenAnyMore,
        CannotTell,
        Contract,
        Effect,
        Failure,
        FileRef,
        Final,
        Guide,
        HandBack,
        Handler,
        Happened,
        LeaseLost,
        NeedsPerson,
        NeedsVerification,
        Recovery,
        Registry,
        Retry,
        Retryable,
        SecretRef,
        Sensitive,
        TaskContext,
        TaskError,
        contract,
        handler,
    )

__all__ = [
    "BuildError",
    "Cancelled",
    "CannotHappenAnyMore",
    "CannotTell",
    "Case",
    "Compiled",
    "Contract",
    "Effect",
    "Failure",
    "FileRef",
    "Final",
    "Guide",
    "HandBack",
    "Handler",
    "Happened",
    "Instance",
    "LeaseLost",
    "NeedsPerson",
    "NeedsVerification",
    "OrbitError",
    "Recovery",
    "Registry",
    "Retry",
    "Retryable",
    "SecretRef",
    "Sensitive",
    "Signal",
    "SignalMatch",
    "SignalMeta",
    "TaskContext",
    "TaskError",
    "Workflow",
    "all_of",
    "any_of",
    "branch",
    "build",
    "contract",
    "fail",
    "handler",
    "instance",
    "is_in",
    "is_null",
    "match",
    "not_",
    "otherwise",
    "parallel",
    "parallel_each",
    "poll",
    "sleep",
    "text",
    "when",
    "when_some",
    "workflow",
]

_HOMES = ("orbit_sdk.errors", "orbit_sdk.handlers", "orbit_sdk.builder")
"""Where the names live, the lightest first."""


def __getattr__(name: str) -> object:
    if name in __all__:
        for home in _HOMES:
            module = import_module(home)
            if name in module.__all__:
                value: object = getattr(module, name)
                globals()[name] = value
                return value
    if not name.startswith("_"):
        missing = import_module("orbit_sdk.builder.absent").absent(name)
        if missing is not None:
            raise missing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
