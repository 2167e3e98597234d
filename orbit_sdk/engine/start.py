"""The first command of an instance."""

from __future__ import annotations

from orbit_sdk.engine.advance import START, run
from orbit_sdk.engine.commands import StartInstance
from orbit_sdk.engine.decision import Refusal
from orbit_sdk.engine.events import STARTED
from orbit_sdk.engine.shape import Plan
from orbit_sdk.engine.state import Instance, InstanceState
from orbit_sdk.engine.turn import Lead, Turn
from orbit_sdk.errors import Code, Detail
from orbit_sdk.values.canonical import canonical_bytes


def new_instance(plan: Plan, command: StartInstance, now: int) -> Instance:
    """The head before its first decision: revision 0, nothing opened yet."""
    return Instance(
        id=command.instance_id,
        namespace_id=command.namespace_id,
        definition_id=plan.definition_id,
        definition_version=plan.definition_version,
        state=InstanceState.RUNNING,
        started_at=now,
        effect_root=command.effect_root,
        revision=0,
        business_key=command.business_key,
        last=now,
    )


def start(turn: Turn, command: StartInstance) -> Refusal | None:
    """Checks the input and opens the first steps."""
    problems = turn.plan.input_problems(command.input)
    if problems:
        details = tuple(problem.detail("input") for problem in problems)
        return Refusal(
            Code.INVALID_ARGUMENT, f"the input is not valid: {details[0].field} {details[0].reason}", details
        )
    limit = turn.limits.input_bytes
    if len(canonical_bytes(command.input)) > limit:
        return Refusal(
            Code.PAYLOAD_TOO_LARGE,
            f"the input has more than {limit} bytes",
            (Detail("input", f"the limit input_bytes is {limit}"),),
        )
    turn.know_input(command.input)
    plan = turn.plan
    turn.leads.append(
        Lead(STARTED, {"definition_id": plan.definition_id, "definition_version": plan.definition_version})
    )
    turn.queue.append(START)
    run(turn)
    return None
