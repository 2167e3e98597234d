"""Everything that is named exists and is of the right kind."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.diagnostics import Path
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View, exit_path, facts_of_exit
from orbit_sdk.check.words import article, near, ref_text
from orbit_sdk.definition.expressions import refs_of
from orbit_sdk.definition.nodes import MergeNode, PollNode, TaskNode, WaitNode, exits, expressions_of
from orbit_sdk.definition.unions import chain_lengths, endless_types
from orbit_sdk.definition.value_types import TypeSchema, named_types_of


@rule(
    "START_MISSING",
    remedy="Name one of the nodes as `start`.",
)
def start_missing(view: View) -> Iterator[Finding]:
    """The start names a step that does not exist."""
    start = view.definition.start
    if start not in view.nodes:
        yield Finding(("start",), f"The start '{start}' does not exist.{near(start, view.nodes)}")


@rule(
    "STEP_MISSING",
    remedy="Lead the exit to an existing step or add the step.",
)
def step_missing(view: View) -> Iterator[Finding]:
    """An exit leads to a step that does not exist."""
    for key, node in view.nodes.items():
        for exit_name, target in exits(node):
            if target not in view.nodes:
                yield Finding(
                    exit_path(key, exit_name),
                    f"Exit {exit_name} of '{key}' leads to '{target}', which does not exist."
                    + near(target, view.nodes),
                )


@rule(
    "JOIN_MISSING",
    remedy="Name the JOIN node at which the arms meet.",
)
def join_missing(view: View) -> Iterator[Finding]:
    """A PARALLEL names a join that does not exist or is no JOIN."""
    for key, node in view.parallels.items():
        joined = view.nodes.get(node.join)
        if joined is None:
            what = f"does not exist.{near(node.join, view.nodes)}"
        elif joined.kind != "JOIN":
            what = f"is no JOIN but {article(joined.kind)}."
        else:
            continue
        yield Finding(("nodes", key, "join"), f"The join '{node.join}' of PARALLEL '{key}' {what}")


@rule(
    "HANDLER_MISSING",
    remedy="Declare the handler with this version under `handlers`.",
)
def handler_missing(view: View) -> Iterator[Finding]:
    """A step names a handler that is not declared."""
    declared = view.definition.handlers
    for key, node in view.nodes.items():
        if isinstance(node, TaskNode | PollNode) and node.handler not in declared:
            yield Finding(
                ("nodes", key, "handler"),
                f"Handler {node.handler} of '{key}' is not declared.{near(node.handler, declared)}",
            )


@rule(
    "SIGNAL_MISSING",
    remedy="Declare the signal and its body under `signals`.",
)
def signal_missing(view: View) -> Iterator[Finding]:
    """A step waits for a signal that is not declared."""
    declared = view.definition.signals
    for path, signal in _signals(view):
        if signal not in declared:
            yield Finding(path, f"Signal {signal} is not declared.{near(signal, declared)}")


def _signals(view: View) -> Iterator[tuple[Path, str]]:
    for key, node in view.nodes.items():
        if isinstance(node, WaitNode):
            yield ("nodes", key, "signal"), node.signal
        elif isinstance(node, PollNode) and node.final_signal is not None:
            yield ("nodes", key, "final_signal", "signal"), node.final_signal.signal


@rule(
    "TYPE_MISSING",
    remedy="Add the type to `types` or refer to one that is there.",
)
def type_missing(view: View) -> Iterator[Finding]:
    """A type refers to a name that `types` does not hold."""
    types = view.definition.types
    for path, schema in _types(view):
        for inner, name in named_types_of(schema):
            if name not in types:
                yield Finding((*path, *inner), f"Type {name} does not exist.{near(name, types)}")


def _types(view: View) -> Iterator[tuple[Path, TypeSchema]]:
    definition = view.definition
    yield ("input",), definition.input
    yield ("output",), definition.output
    for name, schema in definition.types.items():
        yield ("types", name), schema
    for key, handler in definition.handlers.items():
        yield ("handlers", key, "result"), handler.result
        for name, schema in handler.parameters.items():
            yield ("handlers", key, "parameters", name), schema
    for key, signal in definition.signals.items():
        yield ("signals", key, "body"), signal.body
    for key, node in view.nodes.items():
        if isinstance(node, MergeNode):
            yield ("nodes", key, "result"), node.result


@rule(
    "TYPE_ENDLESS",
    remedy="Put an object or an array between the type and its own name.",
)
def type_endless(view: View) -> Iterator[Finding]:
    """A type is defined by nothing but itself, so no value can be told to be of it."""
    for name in endless_types(view.definition.types):
        yield Finding(
            ("types", name), f"Type {name} leads back to itself without an object or array between."
        )


@rule(
    "TYPE_CHAIN_LONG",
    remedy="Refer to the type at the end of the chain.",
)
def type_chain_long(view: View) -> Iterator[Finding]:
    """Types refer to types that refer to types, more often than the limit."""
    most = view.limits.type_chain
    for name, length in chain_lengths(view.definition.types).items():
        if length == most + 1:  # the longer ones only lead there
            yield Finding(
                ("types", name), f"Type {name} leads over {length} names to its end; the limit is {most}."
            )


@rule(
    "PARAMETER_UNDECLARED",
    remedy="Declare the parameter's type or take it out of `required`.",
)
def parameter_undeclared(view: View) -> Iterator[Finding]:
    """A handler requires a parameter that it does not declare."""
    for key, handler in view.definition.handlers.items():
        for name in handler.required:
            if name not in handler.parameters:
                yield Finding(
                    ("handlers", key, "required"), f"Handler {key} requires '{name}' but does not declare it."
                )


@rule(
    "VERIFY_MISSING",
    remedy="Declare `verify` or choose another recovery level.",
)
def verify_missing(view: View) -> Iterator[Finding]:
    """A handler of level VERIFIABLE has no verify handler."""
    for key, handler in view.definition.handlers.items():
        if handler.recovery == "VERIFIABLE" and not handler.verify:
            yield Finding(("handlers", key, "verify"), f"Handler {key} is VERIFIABLE but cannot verify.")


@rule(
    "FACT_MISSING",
    remedy="Refer to the input, the instance, or to a step that leaves such a fact behind.",
)
def fact_missing(view: View) -> Iterator[Finding]:
    """A reference names a step that does not exist, or something that the step never leaves behind."""
    for key, node in view.nodes.items():
        for place in expressions_of(node):
            for inner, ref in refs_of(place.item):
                problem = _fact_problem(view, ref.ref, ref.of or "result")
                if problem:
                    path = ("nodes", key, *place.path, *inner)
                    yield Finding(path, f"{ref_text(ref)} at '{key}' cannot be read: {problem}")


def _fact_problem(view: View, source: str, of: str) -> str | None:
    if source in ("input", "instance"):
        return None if of == "result" else f"'{source}' has no {of}."
    node = view.nodes.get(source)
    if node is None:
        return f"there is no step '{source}'.{near(source, [*view.nodes, 'input', 'instance'])}"
    left = {
        fact for name in ("next", "on_failure", "on_failed") for fact in facts_of_exit(source, node, name)
    }
    if all(fact.of != of for fact in left):
        return f"{article(node.kind)} leaves no {of} behind."
    return None


RULES = (
    start_missing,
    step_missing,
    join_missing,
    handler_missing,
    signal_missing,
    type_missing,
    type_endless,
    type_chain_long,
    parameter_undeclared,
    verify_missing,
    fact_missing,
)
