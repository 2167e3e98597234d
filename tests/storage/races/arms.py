"""Arms that meet, results that several loops find, and advances that are cut into pieces."""

from __future__ import annotations

from typing import Any

from orbit_server.pulse.tasks.lifecycle import Said
from orbit_server.weave.state.running import Weave
from tests.documents import document, end, join, parallel, task
from tests.storage.races.race import Race, steps
from tests.storage.races.scene import (
    Case,
    begin,
    cancel,
    claim,
    consume,
    go_on,
    pause,
    report,
)

SAFE = document({"work": task("next", "safe"), "next": task("done", "safe"), "done": end()})
ARMS = document(
    {
        "both": parallel("meet", left="left", right="right"),
        "left": task("meet", "safe", on_failure="FAIL"),
        "right": task("meet", "safe", on_failure="FAIL"),
        "meet": join("after"),
        "after": task("done", "safe"),
        "done": end(),
    }
)
PATIENT = {
    **ARMS,
    "nodes": {**ARMS["nodes"], "both": parallel("meet", "LET_OTHERS_FINISH", left="left", right="right")},
}

both = (claim("left", one_step=True), claim("right", one_step=True))
failed = {"said": Said.FINAL, "code": "NO"}
left_failed = report("left", alone=True, **failed)
busy: dict[str, Any] = {"said": Said.RETRYABLE, "code": "BUSY", "effect_unknown": False}


def in_small_steps(*commands: Any) -> Any:
    """So that a single advance does not reach its end, and a checkpoint is stored."""

    async def prepare(case: Case) -> None:
        for node in (case.one, case.other):
            limits = node.weave.limits
            case.notes.setdefault("limits", []).append((node, node.weave))
            node.weave = Weave(node.weave.catalog, limits.__class__(transitions=1))
        await steps(*commands)(case)

    return prepare


async def in_one_step(case: Case) -> None:
    for node, weave in reversed(case.notes["limits"]):
        node.weave = weave


JOINED = (
    "RUNNING left=COMPLETED(SUCCEEDED) meet=COMPLETED right=COMPLETED(SUCCEEDED) after=WAITING_TASK(READY)"
)

RACES = (
    Race(
        "two arms that end",
        ARMS,
        steps(*both),
        report("left"),
        report("right"),
        (
            "ACCEPTED",
            "ACCEPTED",
            JOINED,
        ),
    ),
    Race(
        "two arms whose results two loops find",
        ARMS,
        steps(*both, report("left", alone=True), report("right", alone=True)),
        consume("left"),
        consume("right"),
        (
            "applied",
            "applied",
            JOINED,
        ),
    ),
    Race(
        "two loops that find one result",
        SAFE,
        steps(claim(one_step=True), report(alone=True)),
        consume(),
        consume(),
        ("applied", "nothing", "RUNNING work=COMPLETED(SUCCEEDED) next=WAITING_TASK(READY)"),
    ),
    Race(
        "an arm that fails and one that succeeds",
        ARMS,
        steps(*both, left_failed),
        consume("left"),
        report("right"),
        ("applied", "ACCEPTED", "FAILED left=FAILED(FAILED) meet=FAILED right=COMPLETED(SUCCEEDED)"),
        ("applied", "ACCEPTED", "FAILED left=FAILED(FAILED) meet=FAILED right=COMPLETED(SUCCEEDED)"),
    ),
    Race(
        "two arms that fail",
        ARMS,
        steps(*both, left_failed),
        consume("left"),
        report("right", **failed),
        ("applied", "ACCEPTED", "FAILED left=FAILED(FAILED) meet=FAILED right=FAILED(FAILED)"),
        ("applied", "ACCEPTED", "FAILED left=FAILED(FAILED) meet=FAILED right=FAILED(FAILED)"),
    ),
    Race(
        "an arm that fails and a patient one",
        PATIENT,
        steps(*both, left_failed),
        consume("left"),
        report("right"),
        ("applied", "ACCEPTED", "FAILED left=FAILED(FAILED) meet=FAILED right=COMPLETED(SUCCEEDED)"),
        ("applied", "ACCEPTED", "FAILED left=FAILED(FAILED) meet=FAILED right=COMPLETED(SUCCEEDED)"),
    ),
    Race(
        "an arm that fails and the claim of the other",
        ARMS,
        steps(claim("left", one_step=True), left_failed),
        consume("left"),
        claim("right"),
        ("applied", "nothing", "FAILED left=FAILED(FAILED) meet=FAILED right=STOPPED(CANCELLED)"),
        ("applied", "claimed", "FAILED left=FAILED(FAILED) meet=FAILED right=STOPPED(CANCELLED)"),
    ),
    Race(
        "an arm that fails and the start of the other",
        ARMS,
        steps(claim("left", one_step=True), claim("right"), left_failed),
        consume("left"),
        begin("right"),
        ("applied", "the offer is closed", "FAILED left=FAILED(FAILED) meet=FAILED right=STOPPED(CANCELLED)"),
        ("applied", "granted", "RUNNING left=FAILED(FAILED) meet=PENDING right=WAITING_TASK(CANCELLING)"),
    ),
    Race(
        "two arms that try again",
        ARMS,
        steps(*both),
        report("left", **busy),
        report("right", **busy),
        (
            "ACCEPTED",
            "ACCEPTED",
            "RUNNING left=WAITING_TASK(RETRY_WAIT) meet=PENDING right=WAITING_TASK(RETRY_WAIT)",
        ),
    ),
    Race(
        "an arm that ends and a cancel",
        ARMS,
        steps(*both),
        report("left"),
        cancel,
        (
            "ACCEPTED",
            "version 2",
            "CANCELLING left=COMPLETED(SUCCEEDED) meet=PENDING right=WAITING_TASK(CANCELLING)",
        ),
        (
            "ACCEPTED",
            "version 2",
            "CANCELLING left=COMPLETED(SUCCEEDED) meet=PENDING right=WAITING_TASK(CANCELLING)",
        ),
    ),
    Race(
        "two loops that continue one advance",
        ARMS,
        in_small_steps(),
        go_on,
        go_on,
        ("moved", "moved", "RUNNING meet=PENDING left=WAITING_TASK(READY) right=WAITING_TASK(READY)"),
        after=in_one_step,
    ),
    Race(
        "an advance and a pause",
        ARMS,
        in_small_steps(),
        go_on,
        pause,
        ("moved", "version 2", "RUNNING paused meet=PENDING left=WAITING_TASK(READY)"),
        ("nothing", "version 2", "RUNNING paused meet=PENDING"),
        after=in_one_step,
    ),
    Race(
        "an advance and a cancel",
        ARMS,
        in_small_steps(),
        go_on,
        cancel,
        ("moved", "version 2", "CANCELLED meet=STOPPED left=STOPPED(CANCELLED)"),
        ("nothing", "version 2", "CANCELLED meet=STOPPED"),
        after=in_one_step,
    ),
)
