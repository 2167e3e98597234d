"""The changes between two definitions of one workflow, in the order of the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orbit_sdk.check.diff.change import Change, Party, Verdict, change
from orbit_sdk.check.diff.steps import step_changes
from orbit_sdk.check.diff.types import TypePair
from orbit_sdk.check.fits import Fit
from orbit_sdk.check.words import type_text, values_text
from orbit_sdk.definition.models import Definition, HandlerDecl
from orbit_sdk.definition.nodes import FailNode

_BREAKING, _CAREFUL, _SAFE = Verdict.BREAKING, Verdict.CAREFUL, Verdict.SAFE


def compare(before: Definition, after: Definition) -> tuple[Change, ...]:
    """What changed; nothing when both are the same but for the version."""
    types = TypePair(before, after)
    return (
        *_words(before, after),
        *_ends(before, after, types),
        *_signals(before, after, types),
        *_handlers(before, after, types),
        *step_changes(before, after),
    )


def _words(before: Definition, after: Definition) -> Iterator[Change]:
    for name in ("title", "description"):
        if getattr(before, name) != getattr(after, name):
            yield change((name,), f"The {name} is another one.", Party.OPERATORS, _SAFE)


def _ends(before: Definition, after: Definition, types: TypePair) -> Iterator[Change]:
    """Input, output and error codes: what callers and consumers see."""
    given = types.fit(types.before(before.input), types.after(after.input))
    if given is not Fit.ALWAYS:
        what = f"An input that was good may be refused: {type_text(after.input)} takes less than before."
        yield change(("input",), what, Party.CALLERS, _BREAKING)
    elif not types.same(before.input, after.input):
        yield change(("input",), "The input takes more than before.", Party.CALLERS, _SAFE)
    left = types.fit(types.after(after.output), types.before(before.output))
    if left is not Fit.ALWAYS:
        what = f"An output may be of a form that it never had: {type_text(after.output)}."
        yield change(("output",), what, Party.CONSUMERS, _BREAKING)
    elif not types.same(before.output, after.output):
        yield change(("output",), "The output holds less than it could before.", Party.CONSUMERS, _SAFE)
    old, new = _codes(before), _codes(after)
    if new - old:
        what = f"It may fail with {values_text(sorted(new - old))}, which it never did."
        yield change(("nodes",), what, Party.CALLERS, _CAREFUL)
    if old - new:
        what = f"It does not fail with {values_text(sorted(old - new))} any more."
        yield change(("nodes",), what, Party.CALLERS, _SAFE)


def _codes(definition: Definition) -> set[str]:
    return {node.error.code for node in definition.nodes.values() if isinstance(node, FailNode)}


def _signals(before: Definition, after: Definition, types: TypePair) -> Iterator[Change]:
    for name in sorted({*before.signals, *after.signals}):
        old, new = before.signals.get(name), after.signals.get(name)
        path = ("signals", name)
        if old is None:
            yield change(path, f"Somebody must send {name} from now on.", Party.SENDERS, _CAREFUL)
        elif new is None:
            yield change(path, f"Nobody waits for {name} any more.", Party.SENDERS, _CAREFUL)
        elif types.fit(types.before(old.body), types.after(new.body)) is not Fit.ALWAYS:
            what = f"A body of {name} that was good may be refused: {type_text(new.body)} takes less."
            yield change(path, what, Party.SENDERS, _BREAKING)
        elif not types.same(old.body, new.body):
            yield change(path, f"{name} takes more than before.", Party.SENDERS, _SAFE)


def _handlers(before: Definition, after: Definition, types: TypePair) -> Iterator[Change]:
    for key in sorted({*before.handlers, *after.handlers}):
        old, new = before.handlers.get(key), after.handlers.get(key)
        path = ("handlers", key)
        if old is None:
            what = f"A worker must offer {key} before the new version takes starts."
            yield change(path, what, Party.WORKERS, _CAREFUL)
        elif new is None:
            what = f"{key} is not used any more; keep it until no older instance needs it."
            yield change(path, what, Party.WORKERS, _SAFE)
        else:
            yield from _contract(key, old, new, types)


def _contract(key: str, old: HandlerDecl, new: HandlerDecl, types: TypePair) -> Iterator[Change]:
    """A handler whose declaration changed under its version: workers hold the old one."""
    path = ("handlers", key)
    for name in _parameters(old, new, types):
        what = f"Workers that know the old {key} may refuse its argument '{name}'."
        yield change((*path, "parameters", name), what, Party.WORKERS, _BREAKING)
    if types.fit(types.before(old.result), types.after(new.result)) is not Fit.ALWAYS:
        what = f"A result of workers that know the old {key} may be refused."
        yield change((*path, "result"), what, Party.WORKERS, _BREAKING)
    if old.recovery != new.recovery:
        what = f"{key} is {new.recovery} instead of {old.recovery}: make sure that its code is."
        yield change((*path, "recovery"), what, Party.WORKERS, _BREAKING)
    for name, was, now in (("errors", old.errors, new.errors), ("verify", old.verify, new.verify)):
        if was != now:
            what = f"The declaration of {key} says another `{name}`: deploy its workers first."
            yield change((*path, name), what, Party.WORKERS, _CAREFUL)


def _parameters(old: HandlerDecl, new: HandlerDecl, types: TypePair) -> Sequence[str]:
    """Arguments that the new version may send and a worker with the old declaration may refuse."""
    return [
        name
        for name, schema in sorted(new.parameters.items())
        if name not in old.parameters
        or types.fit(types.after(schema), types.before(old.parameters[name])) is not Fit.ALWAYS
    ] + [name for name in sorted(old.required) if name not in new.required]
