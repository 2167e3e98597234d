"""An external job, from its first check to the receipt: the workflow `demo.external_job` and its handlers.

    validate -> a person approves -> prepare the data -> submit to the channel
             -> ask until it is done (or its receipt comes first) -> report what was left out

The channel is a service of somebody else (`channel.py` plays it). Submitting to it is the one step that
must not happen twice, and the one whose outcome may be unknown: its handler can *verify*.
"""

from __future__ import annotations

import csv
import io
import os
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Literal

import httpx
from pydantic import BaseModel

import orbit_sdk as orbit

DATA = Path(__file__).parent / "data"


class Job(BaseModel):
    """What the caller asks for: send the orders of one file."""

    job_id: str
    source: str
    requested_by: str


class Validated(BaseModel):
    rows: int
    usable: int


class Review(BaseModel):
    approved: bool
    comment: str


class Prepared(BaseModel):
    """The cleaned data as CSV text, one line per customer."""

    content: str
    customers: int
    left_out: int


class Submitted(BaseModel):
    operation_id: str


class Status(BaseModel):
    state: Literal["processing", "done", "rejected"]
    receipt: str | None = None


class Outcome(BaseModel):
    status: Literal["COMPLETE", "COMPLETE_WITH_GAPS", "NOT_APPROVED"]
    receipt: str | None
    left_out: int


REVIEW = orbit.Signal("job.review", Review)
RECEIPT = orbit.Signal("job.receipt", Status)


def channel() -> httpx.AsyncClient:
    """The external channel's interface; its address is the worker's business, not the workflow's."""
    return httpx.AsyncClient(base_url=os.environ["CHANNEL_URL"], timeout=30)


def usable_rows(source: str) -> tuple[list[tuple[str, Decimal]], int]:
    """(customer, amount) of the rows that can be sent, and the number of all rows."""
    usable: list[tuple[str, Decimal]] = []
    rows = list(csv.DictReader((DATA / Path(source).name).read_text(encoding="utf-8").splitlines()))
    for row in rows:
        try:
            amount = Decimal(row["amount"])
        except InvalidOperation:
            continue
        if amount > 0:
            usable.append((row["customer"], amount))
    return usable, len(rows)


@orbit.handler(
    "job.validate", version=1, queue="jobs", recovery=orbit.Recovery.READ_ONLY, errors=("NO_DATA",)
)
def validate(ctx: orbit.TaskContext, job: Job) -> Validated:
    """Looks at the file; a job without a single usable row is a definite failure."""
    usable, rows = usable_rows(job.source)
    if not usable:
        raise orbit.Final("NO_DATA", f"{job.source} has no usable row")
    return Validated(rows=rows, usable=len(usable))


@orbit.handler("job.prepare", version=1, queue="jobs", recovery=orbit.Recovery.IDEMPOTENT)
def prepare(ctx: orbit.TaskContext, job: Job) -> Prepared:
    """Sums the usable rows by customer. Doing it twice gives the same bytes."""
    usable, rows = usable_rows(job.source)
    sums: dict[str, Decimal] = {}
    for customer, amount in usable:
        sums[customer] = sums.get(customer, Decimal(0)) + amount
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["customer", "amount"])
    writer.writerows((customer, str(sums[customer])) for customer in sorted(sums))
    return Prepared(content=out.getvalue(), customers=len(sums), left_out=rows - len(usable))


@orbit.handler("job.submit", version=1, queue="jobs", recovery=orbit.Recovery.VERIFIABLE, errors=("CLOSED",))
async def submit(ctx: orbit.TaskContext, content: str) -> Submitted:
    """Hands the data over. `ctx.effect_key` is what the channel recognises a repeat by."""
    async with channel() as http:
        answer = await http.post(
            "/jobs",
            json={
                "effect_key": ctx.effect_key,
                "generation": ctx.generation,
                "content": content,
                "workflow_id": ctx.workflow_id,
            },
        )
    if answer.status_code == httpx.codes.CONFLICT:
        raise orbit.Final("CLOSED", "the channel takes no jobs now")
    answer.raise_for_status()
    return Submitted(operation_id=answer.json()["operation_id"])


@submit.verify
async def was_submitted(
    ctx: orbit.TaskContext, content: str
) -> orbit.Happened[Submitted] | orbit.CannotHappenAnyMore | orbit.CannotTell:
    """Asked when it is unknown whether a submission arrived. The channel remembers keys, and fences what is
    older than this question: a late request is refused, while the next attempt, which is younger, is taken.
    """
    async with channel() as http:
        answer = await http.post(f"/keys/{ctx.effect_key}/fence", json={"generation": ctx.generation})
    if answer.status_code != httpx.codes.OK:
        return orbit.CannotTell()
    used = answer.json()["operation_id"]
    return orbit.CannotHappenAnyMore() if used is None else orbit.Happened(Submitted(operation_id=used))


@orbit.handler("job.status", version=1, queue="jobs", recovery=orbit.Recovery.READ_ONLY)
async def status(ctx: orbit.TaskContext, operation_id: str) -> Status:
    """Asks the channel how far it is."""
    async with channel() as http:
        answer = await http.get(f"/jobs/{operation_id}")
    answer.raise_for_status()
    return Status.model_validate(answer.json())


@orbit.handler("job.report", version=1, queue="jobs", recovery=orbit.Recovery.IDEMPOTENT)
def report_gaps(ctx: orbit.TaskContext, job_id: str, left_out: int) -> int:
    """Tells that some rows were left out (here: only a log line)."""
    ctx.log.warning("rows were left out", job_id=job_id, left_out=left_out)
    return left_out


@orbit.workflow("demo.external_job", version=1)
def external_job(job: Job) -> Outcome:
    """Runs once, when the definition is compiled; what runs in production is the graph it describes."""
    validate.options(on_failure="FAIL")(job)  # orbit: ignore[UNUSED_RESULT] it only refuses bad files
    review = REVIEW.wait(
        match=job.job_id,
        timeout=timedelta(days=2),
        on_timeout=lambda: orbit.build(Review, approved=False, comment="nobody answered in two days"),
    )

    def approved() -> Outcome:
        prepared = prepare(job)
        sent = submit.options(
            on_failure=lambda _: orbit.fail("REFUSED", "the channel took no jobs"),
            review=orbit.Guide("Ask the channel's desk whether a job with this effect key exists."),
        )(prepared.content)
        final = orbit.poll(
            lambda: status(sent.operation_id),
            every=timedelta(seconds=2),
            within=timedelta(hours=1),
            state=lambda s: s.state,
            pending={"processing"},
            succeeded={"done"},
            failed={"rejected"},
            on_failed=lambda _: orbit.fail("REJECTED", "the channel rejected the job"),
            final_signal=RECEIPT.match(sent.operation_id),
        )

        def with_gaps() -> Outcome:
            told = report_gaps(job.job_id, prepared.left_out)
            return orbit.build(Outcome, status="COMPLETE_WITH_GAPS", receipt=final.receipt, left_out=told)

        return orbit.branch(
            orbit.when(prepared.left_out > 0, with_gaps),
            orbit.otherwise(
                lambda: orbit.build(Outcome, status="COMPLETE", receipt=final.receipt, left_out=0)
            ),
        )

    return orbit.branch(
        orbit.when(review.approved, approved),
        orbit.otherwise(lambda: orbit.build(Outcome, status="NOT_APPROVED", receipt=None, left_out=0)),
    )
