"""Which events a subscription wants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from orbit_sdk.engine.state import TERMINAL_INSTANCE_STATES
from orbit_server.pulse.tasks.lifecycle import TERMINAL

__all__ = ["ENDED", "KINDS", "Facts", "Filter", "stored_filter"]

KINDS: Final = {
    "task": "TASK",
    "workflow": "WORKFLOW",
    "workflow_step": "STEP",
    "workflow_signal": "SIGNAL",
}
"""The kinds of what events tell of, as readers call them."""
ENDED: Final = frozenset(state.value for state in (*TERMINAL, *TERMINAL_INSTANCE_STATES))
"""The states in which a task or a workflow is finished, as events name them; a review is not among them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an event and of what it tells of."""

    kind: str
    type: str
    state: str | None
    queue: str | None = None
    handler: str | None = None
    definition: str | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """An empty set wants everything; all that are not empty must hold."""

    kinds: frozenset[str]
    types: frozenset[str]
    states: frozenset[str]
    queues: frozenset[str]
    handlers: frozenset[str]
    definitions: frozenset[str]

    def wants(self, facts: Facts) -> bool:
        """Whether the event is delivered."""
        return all(
            not wanted or value in wanted
            for wanted, value in (
                (self.kinds, facts.kind),
                (self.types, facts.type),
                (self.states, facts.state),
                (self.queues, facts.queue),
                (self.handlers, facts.handler),
                (self.definitions, facts.definition),
            )
        )

    @property
    def asks_tasks(self) -> bool:
        """Whether the task itself has to be looked at."""
        return bool(self.queues or self.handlers or self.definitions)

    @property
    def asks_workflows(self) -> bool:
        """Whether the workflow itself has to be looked at."""
        return bool(self.definitions)


@lru_cache(maxsize=1_024)
def stored_filter(text: str) -> Filter:
    """The filter of a stored text."""
    said = orjson.loads(text)
    names = ("kinds", "types", "states", "queues", "handlers", "definitions")
    return Filter(*(frozenset(said.get(name, ())) for name in names))
