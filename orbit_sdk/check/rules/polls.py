"""A POLL only asks, and can sort every answer it expects."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.fits import Fit
from orbit_sdk.check.narrow import NOTHING
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.check.words import type_text, value_text
from orbit_sdk.definition.expressions import Ref
from orbit_sdk.definition.nodes import PollNode
from orbit_sdk.values.canonical import canonical_json

_ASKING = ("READ_ONLY", "IDEMPOTENT")
_LISTS = ("pending", "succeeded", "failed")


@rule(
    "POLL_HANDLER_UNSAFE",
    remedy="Ask with a READ_ONLY or IDEMPOTENT handler; submit with a TASK before.",
)
def poll_handler_unsafe(view: View) -> Iterator[Finding]:
    """A POLL asks with a handler that is not safe to repeat."""
    for key, node in _polls(view):
        handler = view.definition.handlers.get(node.handler)
        if handler is not None and handler.recovery not in _ASKING:
            yield Finding(
                ("nodes", key, "handler"),
                f"POLL '{key}' asks with {node.handler}, whose recovery level is {handler.recovery}.",
            )


@rule(
    "POLL_STATE_REPEATED",
    remedy="Leave the value in one list only.",
)
def poll_state_repeated(view: View) -> Iterator[Finding]:
    """A value stands in two of the lists by which a POLL sorts its answers."""
    for key, node in _polls(view):
        seen: dict[str, str] = {}
        for name in _LISTS:
            for value in getattr(node.state, name):
                first = seen.setdefault(canonical_json(value), name)
                if first != name:
                    yield Finding(
                        ("nodes", key, "state", name),
                        f"POLL '{key}' counts {value_text(value)} as {first} and as {name}.",
                    )


@rule(
    "POLL_STATE_IMPOSSIBLE",
    remedy="Name values of the state's type, and a path that leads to it.",
)
def poll_state_impossible(view: View) -> Iterator[Finding]:
    """A POLL sorts by a value that the answer can never have."""
    for key, node in _polls(view):
        reading = view.typer.read(Ref.model_construct(ref=key, of=None, path=node.state.path), NOTHING)
        if reading.unknown:
            where = ".".join(node.state.path)
            yield Finding(("nodes", key, "state", "path"), f"The answer of POLL '{key}' has no {where}.")
            continue
        for name in _LISTS:
            for value in getattr(node.state, name):
                if not any(view.accepts(atom, value) for atom in view.fitter.atoms(reading.type)):
                    yield Finding(
                        ("nodes", key, "state", name),
                        f"The state of POLL '{key}' is never {value_text(value)}: "
                        f"it is of type {type_text(reading.type)}.",
                    )


@rule(
    "POLL_FAILED_OPEN",
    remedy="Add `on_failed`.",
)
def poll_failed_open(view: View) -> Iterator[Finding]:
    """A POLL sorts answers as failed but does not say what happens then."""
    for key, node in _polls(view):
        if node.state.failed and node.on_failed is None:
            yield Finding(("nodes", key), f"POLL '{key}' has failed states but no `on_failed`.")


@rule(
    "POLL_FAILED_DEAD",
    remedy="Name the failed states or remove `on_failed`.",
)
def poll_failed_dead(view: View) -> Iterator[Finding]:
    """A POLL says what happens on a failed answer, but no answer is sorted as failed."""
    for key, node in _polls(view):
        if not node.state.failed and node.on_failed is not None:
            yield Finding(("nodes", key, "on_failed"), f"POLL '{key}' has `on_failed` but no failed states.")


@rule(
    "RECEIPT_TYPE_DIFFERS",
    remedy="Declare the signal's body as the handler's result type.",
)
def receipt_type_differs(view: View) -> Iterator[Finding]:
    """The body of a POLL's final signal is not of the type of the query's result."""
    for key, node in _polls(view):
        if node.final_signal is None:
            continue
        body = view.definition.signals[node.final_signal.signal].body
        result = view.definition.handlers[node.handler].result
        if view.fitter.fit(body, result) is not Fit.ALWAYS:
            yield Finding(
                ("nodes", key, "final_signal", "signal"),
                f"Signal {node.final_signal.signal} of POLL '{key}' carries {type_text(body)}, "
                f"but the query answers {type_text(result)}.",
            )


def _polls(view: View) -> Iterator[tuple[str, PollNode]]:
    for key, node in view.nodes.items():
        if isinstance(node, PollNode):
            yield key, node


ALWAYS_RULES = (poll_handler_unsafe, poll_state_repeated, poll_failed_open, poll_failed_dead)
"""Rules that need nothing but the node and its handler."""

TYPED_RULES = (poll_state_impossible, receipt_type_differs)
"""Rules that need sound types and references."""
