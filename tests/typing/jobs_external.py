"""A job that is prepared, reviewed, submitted and followed until its receipt: each construct at work."""

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel

import orbit_sdk as orbit


class Job(BaseModel):
    job_id: str
    rows: int


class Prepared(BaseModel):
    path: str


class Review(BaseModel):
    approved: bool


class Submitted(BaseModel):
    operation_id: str


class Status(BaseModel):
    state: Literal["processing", "done", "rejected", "unknown"]
    receipt: str | None = None


class Outcome(BaseModel):
    receipt: str | None


REVIEW = orbit.Signal("job.review", Review)
RECEIPT = orbit.Signal("job.receipt", Status)


@orbit.handler("job.prepare", version=1, queue="jobs", recovery=orbit.Recovery.IDEMPOTENT)
def prepare(ctx: orbit.TaskContext, job: Job) -> Prepared:
    return Prepared(path=f"/jobs/{job.job_id}")


@orbit.handler(
    "job.submit",
    version=1,
    queue="jobs",
    recovery=orbit.Recovery.VERIFIABLE,
    errors=("NO_FUNDS", "CLOSED"),
)
async def submit(ctx: orbit.TaskContext, path: str, urgency: int = 0) -> Submitted:
    return Submitted(operation_id=ctx.effect_key)


@submit.verify
async def did_submit(
    ctx: orbit.TaskContext, path: str, urgency: int
) -> orbit.Happened[Submitted] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    return orbit.Happened(Submitted(operation_id=ctx.effect_key))


@orbit.handler("job.status", version=1, queue="jobs", recovery=orbit.Recovery.READ_ONLY)
async def status(ctx: orbit.TaskContext, operation_id: str) -> Status:
    return Status(state="done", receipt=operation_id)


@orbit.workflow("jobs.external", version=1)
def external_job(job: Job) -> Outcome:
    prepared, review = orbit.parallel(
        lambda: prepare(job),
        lambda: REVIEW.wait(
            match=job.job_id,
            timeout=timedelta(days=2),
            on_timeout=lambda: orbit.build(Review, approved=False),
        ),
    )

    def approved() -> Outcome:
        sent = submit.options(on_failure=lambda _failure: orbit.fail("REFUSED", "the channel refused"))(
            prepared.path, urgency=5
        )
        final = orbit.poll(
            lambda: status(sent.operation_id),
            every=timedelta(seconds=30),
            within=timedelta(hours=1),
            state=lambda s: s.state,
            pending={"processing"},
            succeeded={"done"},
            failed={"rejected"},
            on_failed=lambda _status: orbit.fail("REJECTED", "the channel rejected the job"),
            final_signal=RECEIPT.match(sent.operation_id),
        )
        return orbit.build(Outcome, receipt=final.receipt)

    return orbit.branch(
        orbit.when(review.approved & (job.rows > 0), approved),
        orbit.otherwise(lambda: orbit.build(Outcome, receipt=None)),
    )
