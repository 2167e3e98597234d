"""Figures in the text format of Prometheus, from plain counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from orbit_server.api.server import Sample, Server
from orbit_server.storage.metrics import Histogram, StorageMetrics

_HELP = {
    "orbit_http_requests_total": ("counter", "Answers by route and status."),
    "orbit_http_request_seconds_total": ("counter", "Time spent on requests by route."),
    "orbit_http_requests_in_work": ("gauge", "Requests in work."),
    "orbit_storage_groups_total": ("counter", "Transactions of the committer."),
    "orbit_storage_commands_total": ("counter", "Commands decided."),
    "orbit_storage_queued": ("gauge", "Commands that wait for a transaction."),
    "orbit_storage_retries_total": ("counter", "Tries after a fault, by driver code."),
    "orbit_storage_group_size": ("histogram", "Commands per transaction."),
    "orbit_storage_phase_seconds": ("histogram", "Time per phase of a transaction; wait is per command."),
    "orbit_clock_suspect": ("gauge", "1 while the database clock is not trusted and time-driven work rests."),
    "orbit_ready": ("gauge", "1 while this node takes requests."),
}
_COUNTS = (
    ("refused", "Commands refused."),
    ("replayed", "Commands answered as an earlier equal request."),
    ("failed", "Commands that failed with a bug."),
    ("missing", "Decisions that asked for more rows."),
    ("dropped", "Follow-ups left to their stored rows."),
    ("queue_full", "Commands turned away because too many wait."),
    ("unknown_commits", "Commits whose outcome was unknown at first."),
    ("unknown_applied", "Unknown commits that had been applied."),
    ("unknown_lost", "Unknown commits that had not."),
    ("clock_jumps", "Jumps of the database clock."),
)


def exposition(server: Server) -> str:
    """The whole page."""
    page: dict[str, list[str]] = {}
    for name, labels, value in _samples(server):
        page.setdefault(_family(name), []).append(f"{name}{_labels(labels)} {_number(value)}")
    lines: list[str] = []
    for family, samples in page.items():
        kind, help_text = _HELP.get(family, ("untyped", ""))
        if help_text:
            lines.append(f"# HELP {family} {help_text}")
        lines.append(f"# TYPE {family} {kind}")
        lines += samples
    return "\n".join(lines) + "\n"


def _samples(server: Server) -> Iterator[Sample]:
    for (method, path, status), count in server.http.answers.items():
        labels = {"method": method, "route": path, "status": str(status)}
        yield "orbit_http_requests_total", labels, count
    for (method, path), took_us in server.http.took_us.items():
        yield "orbit_http_request_seconds_total", {"method": method, "route": path}, took_us / 1e6
    yield "orbit_http_requests_in_work", {}, server.health.requests
    yield "orbit_ready", {}, int(server.health.ready and not server.health.draining)
    yield "orbit_clock_suspect", {}, int(server.database.clock_is_suspect())
    yield from _storage(server.database.metrics)
    for more in server.figures:
        yield from more()


def _storage(metrics: StorageMetrics) -> Iterator[Sample]:
    yield "orbit_storage_groups_total", {}, metrics.groups
    yield "orbit_storage_commands_total", {}, metrics.commands
    yield "orbit_storage_queued", {}, metrics.queued
    for name, _ in _COUNTS:
        yield f"orbit_storage_{name}_total", {}, getattr(metrics, name)
    for code, count in metrics.retries.items():
        yield "orbit_storage_retries_total", {"code": code}, count
    yield from histogram("orbit_storage_group_size", {}, metrics.group_size, 1)
    for phase, found in metrics.phases.items():
        yield from histogram("orbit_storage_phase_seconds", {"phase": phase}, found, 1e6)


def histogram(name: str, labels: Mapping[str, str], found: Histogram, divisor: float) -> Iterator[Sample]:
    """A histogram as the page shows it; its bounds are divided by `divisor`."""
    seen = 0
    for bound, count in zip(found.bounds, found.counts, strict=False):
        seen += count
        yield f"{name}_bucket", {**labels, "le": _number(bound / divisor)}, seen
    yield f"{name}_bucket", {**labels, "le": "+Inf"}, found.observations
    yield f"{name}_sum", labels, found.total / divisor
    yield f"{name}_count", labels, found.observations


_HELP.update({f"orbit_storage_{name}_total": ("counter", text) for name, text in _COUNTS})


def _family(name: str) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and _HELP.get(base, ("",))[0] == "histogram":
            return base
    return name


def describe(figures: Iterable[tuple[str, str, str]]) -> None:
    """Say what more figures mean: (name, kind, help)."""
    for name, kind, help_text in figures:
        _HELP[name] = (kind, help_text)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
