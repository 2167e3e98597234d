"""What type checkers must refuse: every marked line is an error, and no other.

The tests judge a copy without the ignores, which only keep the check of the whole project quiet.
"""

from __future__ import annotations

from datetime import timedelta

import orbit_sdk as orbit
from tests.typing.jobs_external import REVIEW, Job, Outcome, Prepared, prepare, status, submit


@orbit.contract("jobs.ship", version=1)
def ship(ctx: orbit.TaskContext, path: str) -> Prepared:
    raise NotImplementedError


@ship.implement  # pyright: ignore[reportArgumentType, reportCallIssue, reportUntypedFunctionDecorator]  # wrong: its body
def ship_it(ctx: orbit.TaskContext, path: int) -> Prepared:
    return Prepared(path=str(path))


@orbit.workflow("jobs.wrong", version=1)
def wrong(job: Job) -> Outcome:
    submit(3)  # pyright: ignore[reportArgumentType]  # wrong: argument type
    submit()  # pyright: ignore[reportCallIssue]  # wrong: missing argument
    submit("a", hurry=1)  # pyright: ignore[reportCallIssue]  # wrong: unknown argument
    submit.options(max_retries=3)("a")  # pyright: ignore[reportCallIssue]  # wrong: unknown option
    print(prepare(job).paht)  # pyright: ignore[reportAttributeAccessIssue]  # wrong: unknown field
    REVIEW.wait(match="a", timeout=timedelta(1))  # pyright: ignore[reportCallIssue]  # wrong: no on_timeout
    orbit.sleep(5)  # pyright: ignore[reportArgumentType]  # wrong: no unit
    orbit.build(Outcome, recipt=None)  # pyright: ignore[reportCallIssue]  # wrong: unknown field
    sent: Prepared = submit("a")  # pyright: ignore[reportAssignmentType]  # wrong: result type
    orbit.match(status("a").state, {"dnoe": lambda: None})  # wrong: misspelt literal
    ship(3)  # pyright: ignore[reportArgumentType]  # wrong: argument type of a contract
    orbit.parallel_each(3, prepare)  # pyright: ignore[reportArgumentType]  # wrong: no constants
    orbit.parallel(lambda: 1, lambda: 2, compete=True)  # pyright: ignore[reportCallIssue]  # wrong: no such join
    return sent  # pyright: ignore[reportReturnType]  # wrong: output type
