"""How waiting for a workflow can end other than with its output."""

from __future__ import annotations

from orbit_sdk.protocol.workflows import WorkflowDetail


class WorkflowEnded(Exception):
    """Base: the workflow will not give an output, or not without a person. `workflow` is how it stands."""

    def __init__(self, message: str, workflow: WorkflowDetail) -> None:
        super().__init__(message)
        self.workflow = workflow


class WorkflowFailed(WorkflowEnded):
    """It ended FAILED; `code` and `message` are its error."""

    def __init__(self, workflow: WorkflowDetail) -> None:
        error = workflow.error
        self.code = error.code if error is not None else "FAILED"
        self.message = error.message if error is not None else ""
        super().__init__(f"workflow {workflow.id} failed: {self.code}: {self.message}", workflow)


class WorkflowCancelled(WorkflowEnded):
    """It ended CANCELLED. What was done before stays done."""

    def __init__(self, workflow: WorkflowDetail) -> None:
        super().__init__(f"workflow {workflow.id} was cancelled", workflow)


class NeedsReview(WorkflowEnded):
    """A person has to decide; raised only when asked for (`on_review="raise"`)."""

    def __init__(self, workflow: WorkflowDetail) -> None:
        super().__init__(f"workflow {workflow.id} waits for a person", workflow)


class NotFinished(WorkflowEnded):
    """The time-out passed first. The workflow goes on."""

    def __init__(self, workflow: WorkflowDetail) -> None:
        super().__init__(f"workflow {workflow.id} is still {workflow.state}", workflow)
