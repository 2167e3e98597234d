"""What a task submission may say beside its handler and parameters."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.handlers.declaration import Handler


@dataclass(frozen=True, slots=True)
class Submission:
    """Absent means the server's default. `queue` defaults to the handler's own."""

    queue: str | None = None
    business_key: str | None = None
    concurrency_key: str | None = None
    fairness_key: str | None = None
    priority: int | None = None
    start_within: timedelta | None = None
    attempt_timeout: timedelta | None = None
    total_timeout: timedelta | None = None
    retry: Mapping[str, int] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def submission_body(
    handler: Handler[Any, Any], parameters: Mapping[str, Any], delay: timedelta | None, options: Submission
) -> dict[str, Any]:
    """The body of `POST /v1/tasks`. Raises InvalidArgument for parameters the handler does not take."""
    body: dict[str, Any] = {
        "queue": options.queue or handler.queue,
        "handler": handler.name,
        "handler_version": handler.version,
        "parameters": handler.dump_parameters(parameters),
        "recovery": handler.recovery.value,
        "can_verify": handler.can_verify,
    }
    durations = {
        "delay_ms": delay,
        "start_within_ms": options.start_within,
        "attempt_timeout_ms": options.attempt_timeout,
        "total_timeout_ms": options.total_timeout,
    }
    body.update({name: milliseconds(name, value) for name, value in durations.items() if value is not None})
    for name in ("business_key", "concurrency_key", "fairness_key", "priority"):
        value = getattr(options, name)
        if value is not None:
            body[name] = value
    if options.retry is not None:
        body["retry"] = dict(options.retry)
    if options.labels:
        body["labels"] = dict(options.labels)
    trace = current_trace()
    if trace is not None:
        body["traceparent"] = trace
    return body


def current_trace() -> str | None:
    """The W3C trace context that this code runs in, where the application uses OpenTelemetry; else None."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return None
    context = tracing.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def milliseconds(name: str, value: timedelta) -> int:
    """A duration as whole milliseconds. Raises InvalidArgument below one."""
    whole, rest = divmod(value, timedelta(milliseconds=1))
    if whole < 1 or rest:
        raise InvalidArgument.at(name, "is a whole number of milliseconds, at least 1")
    return whole
