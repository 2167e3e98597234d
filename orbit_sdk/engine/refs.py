"""How stored values and derived identities are spelt, in one place."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from orbit_sdk.values.ids import derive_id

_KEPT: Final = 8_192
"""Identities that are remembered: those of one step are asked for again and again while it is decided on."""


def task_ref(task_id: str) -> str:
    """The stored result or error of a task."""
    return f"T:{task_id}"


def signal_ref(signal_id: str) -> str:
    """The body of a signal."""
    return f"S:{signal_id}"


def payload_ref(payload_id: str) -> str:
    """A value that the engine made."""
    return f"P:{payload_id}"


def parse_ref(ref: str) -> tuple[str, str]:
    """("T" | "S" | "P", id) of a reference; ValueError for anything else."""
    kind, colon, identity = ref.partition(":")
    if kind not in ("T", "S", "P") or not colon or not identity:
        raise ValueError(f"{ref!r} is not a reference to a stored value")
    return kind, identity


@lru_cache(maxsize=_KEPT)
def step_id(instance_id: str, step_key: str) -> str:
    """The identity of a step over all its activations: the aggregate of its events."""
    return derive_id(instance_id, step_key)


def wait_id(activation_id: str) -> str:
    """The identity of the one wait that an activation holds."""
    return derive_id(activation_id, "wait")


def effect_key(root: str, step_key: str, round_no: int) -> str:
    """What the outside is given to recognise a repeat: the same over attempts, activations and restarts with
    SAME.
    """
    return derive_id(root, step_key, str(round_no))


def pending_exit(step_key: str, exit_name: str) -> str:
    """An entry of the checkpoint."""
    return f"{step_key}:{exit_name}"


def split_exit(entry: str) -> tuple[str, str]:
    """(step key, exit) of an entry of the checkpoint."""
    step_key, _, exit_name = entry.partition(":")
    return step_key, exit_name


@lru_cache(maxsize=_KEPT)
def activation_id(instance_id: str, step_key: str, activation_no: int) -> str:
    """The identity of one activation. It follows from what it names, so that an earlier result is found by
    primary key however long the history is; the leading time of the instance keeps rows of one time together
    on disk.
    """
    return instance_id[:12] + derive_id(instance_id, step_key, str(activation_no))[12:]
