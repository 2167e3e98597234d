"""The typed language in which workflows are written, and its compiler."""

from orbit_sdk.builder.branches import Case, branch, match, otherwise, when, when_some
from orbit_sdk.builder.conditions import all_of, any_of, is_in, is_null, not_
from orbit_sdk.builder.parallels import parallel, parallel_each
from orbit_sdk.builder.polls import poll
from orbit_sdk.builder.signals import Signal, SignalMatch, SignalMeta
from orbit_sdk.builder.timers import sleep
from orbit_sdk.builder.vocabulary import Instance, build, fail, instance, text
from orbit_sdk.builder.workflows import Compiled, Workflow, workflow

__all__ = [
    "Case",
    "Compiled",
    "Instance",
    "Signal",
    "SignalMatch",
    "SignalMeta",
    "Workflow",
    "all_of",
    "any_of",
    "branch",
    "build",
    "fail",
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
