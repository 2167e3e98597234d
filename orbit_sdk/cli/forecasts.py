"""How `--dry-run` tells what would follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orbit_sdk.cli.output import Output
from orbit_sdk.cli.shapes import moment

if TYPE_CHECKING:
    from orbit_sdk.protocol.workflows import Forecast

__all__ = ["DryRun", "say_forecast"]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would follow; do nothing.")]


def say_forecast(forecast: Forecast, out: Output) -> None:
    """The state that would follow, the steps that would move, the orders that tasks would get."""
    ends = " and ends" if forecast.ends else ""
    paused = " (paused)" if forecast.paused else ""
    out.line(f"would be {forecast.state}{paused}{ends}; nothing was done", "yellow")
    steps = [
        (step.key, step.before or "-", step.state, step.reason, moment(step.due_at or step.deadline_at))
        for step in forecast.steps
    ]
    if steps:
        out.table(("STEP", "NOW", "THEN", "REASON", "UNTIL"), steps, "")
    tasks = [
        (task.order.lower().replace("_", " "), task.task_id or task.handler, task.step_key, task.queue)
        for task in forecast.tasks
    ]
    if tasks:
        out.line()
        out.table(("ORDER", "TASK", "STEP", "QUEUE"), tasks, "")
    if forecast.effects_kept:
        out.line(f"done and kept: {', '.join(forecast.effects_kept)}", "yellow")
