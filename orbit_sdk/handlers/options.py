"""Policy of one step: what `.options(...)` takes. No default is here; they live in `values.defaults`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Literal

__all__ = ["Failure", "FailurePolicy", "Guide", "Retry", "StepOptions"]

FailurePolicy = Literal["REVIEW", "FAIL"]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how fast a step's attempts follow each other; what is not given keeps its default."""

    attempts: int | None = None
    backoff: timedelta | None = None
    factor: float | None = None
    max_backoff: timedelta | None = None
    jitter_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Guide:
    """What a person who has to decide should read: a text, and an address for more."""

    guide: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A definite failure as a catch arm sees it (in a workflow always as a reference)."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StepOptions:
    """Everything one call of a handler may say about its step; None means the default."""

    key: str | None = None
    title: str | None = None
    attempt_timeout: timedelta | None = None
    total_timeout: timedelta | None = None
    start_within: timedelta | None = None
    retry: Retry | None = None
    priority: int | None = None
    concurrency_key: str | None = None
    fairness_key: str | None = None
    on_failure: FailurePolicy | Callable[[Any], Any] | None = None
    review: Guide | None = None

    def given(self) -> dict[str, object]:
        """What was said, by name."""
        return {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not None}
