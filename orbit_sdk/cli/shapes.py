"""How answers of the server are shown."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel

    from orbit_sdk.protocol.workflows import Step, Workflow

__all__ = ["compact", "items", "moment", "opened", "state_of", "step_about", "took", "wire"]

_SHOWN_CHARACTERS = 400


def wire(model: BaseModel) -> Any:
    """An answer as the server wrote it."""
    return model.model_dump(mode="json", by_alias=True)


def items(models: list[Any]) -> dict[str, Any]:
    """A list as one document."""
    return {"items": [wire(model) for model in models]}


def moment(at: datetime | None) -> str:
    """Local time to the second; the exact instant is in the JSON."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def compact(value: Any) -> str:
    """JSON on one line, cut where it gets long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… (--json shows all)"


def state_of(workflow: Workflow) -> str:
    """The state with what is shown beside it."""
    beside = [
        name for name, on in (("paused", workflow.paused), ("cancel asked", workflow.cancel_requested)) if on
    ]
    if workflow.ended_at is not None or not beside:
        return workflow.state
    return f"{workflow.state} ({', '.join(beside)})"


def step_about(step: Step) -> str:
    """What a step is about at this moment, in a few words."""
    parts: list[str] = []
    if step.state == "WAITING_SIGNAL" and step.signal is not None:
        parts.append(f"waits for {step.signal} with match {json.dumps(step.match, ensure_ascii=False)}")
    if step.task_state is not None and step.state in ("WAITING_TASK", "NEEDS_REVIEW"):
        parts.append(f"task {step.task_state}")
    if step.round:
        parts.append(f"round {step.round}")
    if step.activation_no > 1:
        parts.append(f"activation {step.activation_no}")
    if step.review_class is not None and step.state == "NEEDS_REVIEW":
        parts.append(f"review of {step.review_class}")
    if step.reason:
        parts.append(step.reason)
    if step.exit and step.exit != "next":
        case = step.exit.removeprefix("cases.")
        parts.append(f"took case {int(case) + 1}" if case.isdigit() else f"took {step.exit}")
    if step.state in ("WAITING_SIGNAL", "WAITING_TIME") and step.due_at is not None:
        parts.append(f"until {moment(step.due_at)}")
    return ", ".join(parts)


def took(begin: datetime | None, end: datetime | None) -> str:
    """A span of time in its largest fitting unit."""
    if begin is None or end is None:
        return ""
    seconds = (end - begin) / timedelta(seconds=1)
    if seconds < 0.001:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return str(timedelta(seconds=round(seconds)))


def opened(step: Step) -> tuple[bool, float, bool]:
    """Sort key: steps in the order they were opened, those not reached last."""
    since = 0.0 if step.opened_at is None else step.opened_at.timestamp()
    return (step.opened_at is None, since, step.kind == "END")
