"""What could not be applied: the instance shows it and waits for a person, it never loops."""

from __future__ import annotations

from orbit_sdk.engine.advance import block
from orbit_sdk.engine.failure import settle
from orbit_sdk.engine.shape import Task
from orbit_sdk.engine.signals import close_wait
from orbit_sdk.engine.state import ReviewClass
from orbit_sdk.engine.turn import Turn

ENGINE_ERROR = "ENGINE_ERROR"
_MESSAGE_CHARS = 1000


def engine_error(turn: Turn, activation_id: str, message: str) -> bool:
    """Puts the activation into review; when it is not live any more, the targets of the stored checkpoint."""
    message = message[:_MESSAGE_CHARS]
    step = turn.find(activation_id)
    if step is not None and step.arms is None:
        spec = turn.node(step).spec
        possible = step.effect_possible or (
            isinstance(spec, Task) and step.task_id is not None and spec.call.may_have_effect
        )
        close_wait(turn, step)
        turn.review(step, ReviewClass.ENGINE_ERROR, ENGINE_ERROR, message, effect_possible=possible)
        return True
    if not turn.queue:
        return False
    while turn.queue:
        block(turn, turn.queue.popleft(), message)
    settle(turn)
    return True
