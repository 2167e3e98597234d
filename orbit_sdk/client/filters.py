"""What lists and counts may be narrowed to. Whatever is None or left out does not narrow."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from orbit_sdk.protocol.common import micros_of
from orbit_sdk.values.instants import to_rfc3339


class WorkflowFilters(TypedDict, total=False):
    """`step` and `reason` are of a step at which the workflow stands now; instants are aware datetimes."""

    definition_id: str | None
    version: int | None
    state: str | None
    business_key: str | None
    paused: bool | None
    step: str | None
    reason: str | None
    error_code: str | None
    schedule_id: str | None
    labels: Mapping[str, str] | None
    started_from: datetime | None
    started_to: datetime | None


class TaskFilters(TypedDict, total=False):
    """`handler` with or without its version; instants are aware datetimes."""

    state: str | None
    queue: str | None
    handler: str | None
    business_key: str | None
    workflow_id: str | None
    step: str | None
    definition_id: str | None
    version: int | None
    schedule_id: str | None
    error_code: str | None
    review_class: str | None
    labels: Mapping[str, str] | None
    created_from: datetime | None
    created_to: datetime | None


def params_of(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Query parameters of filters."""
    return {name: _text(value) for name, value in filters.items() if value is not None and value != {}}


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_rfc3339(micros_of(value))
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_escaped(text)}" for name, text in value.items())
    return value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(",", "\\,")
