"""`orbit watch`: a workflow's steps as they change, to the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orbit_sdk.cli.command import command
from orbit_sdk.cli.connection import Token, Url, WorkflowId, connected, workflow_id
from orbit_sdk.cli.output import ExitCode, Json, Output, state_style, styled
from orbit_sdk.cli.shapes import compact, moment, opened, state_of, step_about, took, wire

if TYPE_CHECKING:
    from orbit_sdk.client import Orbit
    from orbit_sdk.protocol.workflows import Step, WorkflowDetail

__all__ = ["Teller", "follow", "watch"]

_POLL_S = 10.0
_TASK_POLL_S = 0.5
"""A task's own phases (retried, verified) do not move the workflow: they are looked for while one runs."""

_PLUMBING = frozenset({"MERGE", "PARALLEL", "JOIN", "END"})
_QUIET = frozenset({"PENDING", "SKIPPED", "COMPLETED"})
_PATIENCE_S = 60.0


@command("orbit watch key:A-17", "orbit watch key:A-17 --stop-on-review --timeout 60")
def watch(
    workflow: WorkflowId,
    stop_on_review: Annotated[
        bool, typer.Option("--stop-on-review", help="Leave with exit code 1 when a person has to decide.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="Leave after this: exit code 1."),
    ] = None,
    url: Url = None,
    token: Token = None,
    json: Json = False,
) -> None:
    """Show a workflow live until it ends.

    Exit code 0 when it succeeded, 1 when it failed or was cancelled.
    """
    with connected(url, token, patience=_PATIENCE_S) as client:
        found = workflow_id(client, workflow)
        out = Output(json=json)
        raise typer.Exit(follow(client, found, out, stop_on_review=stop_on_review, timeout=timeout))


def follow(
    client: Orbit,
    found: str,
    out: Output,
    *,
    stop_on_review: bool = False,
    timeout: float | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> ExitCode:
    """Show every change until the workflow ends; the exit code says how.

    `interrupted` is asked at Ctrl-C whether to go on looking, and speaks for itself; without it the workflow
    is left running.
    """
    until = None if timeout is None else time.monotonic() + timeout
    teller = Teller(out)
    detail = None
    looking = True
    while looking:
        looking = False
        try:
            for detail, steps in _changes(client, found, until):
                teller.tell(detail, steps)
                if detail.ended_at is not None or (stop_on_review and detail.state == "NEEDS_REVIEW"):
                    break
        except KeyboardInterrupt:
            if interrupted is None:
                out.note(f"\nthe workflow goes on; look again with: orbit watch {found}", "dim")
            looking = interrupted is not None and interrupted()
            if not looking:
                return ExitCode.REFUSED
    assert detail is not None
    teller.end(detail)
    return ExitCode.GOOD if detail.state == "SUCCEEDED" else ExitCode.REFUSED


def _changes(client: Orbit, found: str, until: float | None) -> Iterator[tuple[WorkflowDetail, list[Step]]]:
    """The workflow and its steps each time something moved; one request stays open in between."""
    detail = client.workflows.get(found)
    while True:
        steps = client.workflows.steps(found).items
        yield detail, steps
        left = _TASK_POLL_S if any(step.state == "WAITING_TASK" for step in steps) else _POLL_S
        if until is not None:
            left = min(left, until - time.monotonic())
        if left <= 0:
            return
        detail = client.workflows.get(found, wait=left, after_revision=detail.revision)


@dataclass(slots=True)
class Teller:
    """Says what is new since the last look: a line per step that moved, in the order of the times shown."""

    out: Output
    known: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    state: str | None = None
    last: datetime | None = None
    """The latest time shown: no later line goes back behind it."""

    def tell(self, detail: WorkflowDetail, steps: list[Step]) -> None:
        if self.state is None and not self.out.json:
            key = f"  key {detail.business_key}" if detail.business_key else ""
            version = "draft" if detail.draft else detail.definition_version
            self.out.line(f"{detail.definition_id}@{version}  {detail.id}{key}", "bold")
        moved: list[tuple[datetime, Step]] = []
        for step in sorted(steps, key=opened):
            mark = (step.state, step.activation_no, step.round, step.task_state, step.review_class)
            before = self.known.get(step.key)
            if before == mark or (before is None and step.state == "PENDING"):
                continue
            self.known[step.key] = mark
            # Between opening and closing, a change has no instant of its own: it is when it was seen.
            first = step.opened_at if before is None else None
            moved.append((step.closed_at or first or datetime.now(UTC), step))
        for at, step in sorted(moved, key=lambda item: item[0]):
            self._step(step, at)
        self._workflow(detail)

    def end(self, detail: WorkflowDetail) -> None:
        if self.out.json:
            return
        if detail.state == "SUCCEEDED":
            self.out.line(f"output  {compact(detail.output)}")
        elif detail.error is not None:
            self.out.line(f"error   {detail.error.code}: {detail.error.message}", "red")
        elif detail.ended_at is None:
            self.out.note(f"still {state_of(detail)}; look again with: orbit watch {detail.id}", "dim")

    def _step(self, step: Step, at: datetime) -> None:
        if self.out.json:
            self.out.event({"step": wire(step)})
            return
        if step.state == "SKIPPED" or (step.kind in _PLUMBING and step.state in _QUIET):
            return  # how the graph is drawn, not what happens
        about = step_about(step) or took(step.opened_at, step.closed_at)
        self._say(at, step.key, step.state, about)

    def _workflow(self, detail: WorkflowDetail) -> None:
        state = state_of(detail)
        if state == self.state:
            return
        # RUNNING and WAITING follow from the steps just told; people need not read them twice.
        quiet = self.state is not None and state in ("RUNNING", "WAITING")
        self.state = state
        if self.out.json:
            self.out.event({"workflow": wire(detail)})
        elif not quiet and state not in ("RUNNING", "WAITING"):
            hint = "decide with: orbit review list" if detail.state == "NEEDS_REVIEW" else ""
            self._say(
                detail.ended_at, "workflow", detail.state, hint or took(detail.started_at, detail.ended_at)
            )

    def _say(self, at: datetime | None, what: str, state: str, about: str) -> None:
        shown = styled(state.ljust(14), state_style(state), sys.stdout)
        at = self._not_before(at)
        clock = styled(moment(at)[11:] or " " * 8, "dim", sys.stdout)
        self.out.line(f"{clock}  {what.ljust(20)}  {shown}  {about}".rstrip())

    def _not_before(self, at: datetime | None) -> datetime | None:
        """The time to show: never behind the one before. A new day is said first."""
        if at is None:
            return None
        before, self.last = self.last, at if self.last is None else max(at, self.last)
        day = moment(self.last)[:10]
        if day != moment(before or datetime.now(UTC))[:10]:
            self.out.line(day, "dim")
        return self.last
