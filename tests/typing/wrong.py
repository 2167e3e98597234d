"""What type checkers must refuse: every line with a mark is an error, and no other is."""

from __future__ import annotations

from datetime import timedelta

import orbit_sdk as orbit
from tests.typing.jobs_external import REVIEW, Job, Outcome, Prepared, prepare, status, submit


@orbit.workflow("jobs.wrong", version=1)
def wrong(job: Job) -> Outcome:
    submit(3)  # wrong: argument type
    submit()  # wrong: missing argument
    submit("a", hurry=1)  # wrong: unknown argument
    submit.options(max_retries=3)("a")  # wrong: unknown option
    print(prepare(job).paht)  # wrong: unknown field
    REVIEW.wait(match="a", timeout=timedelta(1))  # wrong: no on_timeout
    orbit.sleep(5)  # wrong: no unit
    orbit.build(Outcome, recipt=None)  # wrong: unknown field
    sent: Prepared = submit("a")  # wrong: result type
    orbit.match(status("a").state, {"dnoe": lambda: None})  # wrong: misspelt literal
    return sent  # wrong: output type
