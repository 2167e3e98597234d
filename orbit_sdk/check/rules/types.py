"""Every value fits where it goes: always, or at least not never."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orbit_sdk.check.diagnostics import Path, Severity
from orbit_sdk.check.fact_types import INSTANT, PIECE, TEXT
from orbit_sdk.check.fits import Fit
from orbit_sdk.check.mapping import Mapper, Misfit
from orbit_sdk.check.narrow import Proofs
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import Placed, View
from orbit_sdk.check.words import near, ref_text, type_text
from orbit_sdk.definition.expressions import Expression, Ref, TextExpr, parts_of, refs_of
from orbit_sdk.definition.nodes import MergeNode, PollNode, SucceedNode, TaskNode, UntilNode, WaitNode
from orbit_sdk.definition.value_types import TypeSchema


@rule(
    "FIELD_UNKNOWN",
    remedy="Name a property of the type, or add it to the type.",
)
def field_unknown(view: View) -> Iterator[Finding]:
    """A reference names a property that its type does not have."""
    for path, ref, known in view.once(_sound_refs):
        reading = view.typer.read(ref, known)
        if reading.unknown:
            name = ref.steps[reading.depth]
            before = ".".join([str(ref.fact), *ref.steps[: reading.depth]])
            what = (
                f"has no property '{name}'.{near(name, reading.names)}" if reading.names else "is no object."
            )
            yield Finding(path, f"{ref_text(ref)} at '{path[1]}' cannot be read: {before} {what}")


@rule(
    "PATH_UNCERTAIN",
    severity=Severity.WARNING,
    remedy="Test it with `is_null` on a BRANCH before, or make the property required.",
)
def path_uncertain(view: View) -> Iterator[Finding]:
    """A reference leads through something that may be null or no object, which sends the run to a person."""
    for path, ref, known in view.once(_sound_refs):
        reading = view.typer.read(ref, known)
        if reading.through is not None and not reading.unknown:
            before = ".".join([str(ref.fact), *ref.steps[: reading.through]])
            yield Finding(path, f"{ref_text(ref)} at '{path[1]}': {before} may be no object at run time.")


@rule(
    "PARAMETER_UNKNOWN",
    remedy="Remove it, or name a parameter of the handler.",
)
def parameter_unknown(view: View) -> Iterator[Finding]:
    """A step gives its handler a parameter that the handler does not have."""
    for key, node in view.nodes.items():
        if isinstance(node, TaskNode | PollNode):
            declared = view.definition.handlers[node.handler].parameters
            for name in node.input:
                if name not in declared:
                    yield Finding(
                        ("nodes", key, "input", name),
                        f"'{key}' gives '{name}', which {node.handler} does not take.{near(name, declared)}",
                    )


@rule(
    "PARAMETER_MISSING",
    remedy="Give the parameter.",
)
def parameter_missing(view: View) -> Iterator[Finding]:
    """A step does not give its handler a parameter that the handler requires."""
    for key, node in view.nodes.items():
        if isinstance(node, TaskNode | PollNode):
            for name in view.definition.handlers[node.handler].required:
                if name not in node.input:
                    yield Finding(
                        ("nodes", key, "input"),
                        f"'{key}' does not give '{name}', which {node.handler} requires.",
                    )


@rule(
    "VALUE_NEVER_FITS",
    remedy="Give a value of the needed type; a handler can convert.",
)
def value_never_fits(view: View) -> Iterator[Finding]:
    """A value can never be of the type that is needed where it goes."""
    for target, misfit in view.once(_misfits):
        if misfit.fit is Fit.NEVER:
            yield _told(target, misfit)


@rule(
    "VALUE_MAY_NOT_FIT",
    severity=Severity.WARNING,
    remedy="Make the types agree, or test an optional with `is_null` on a BRANCH before.",
)
def value_may_not_fit(view: View) -> Iterator[Finding]:
    """Whether a value is of the needed type shows only at run time; if not, a person is asked."""
    for target, misfit in view.once(_misfits):
        if misfit.fit is Fit.RUNTIME and not target.strict:
            yield _told(target, misfit)


@rule(
    "MERGE_MAY_NOT_FIT",
    remedy="Make every input fit the MERGE's `result`, or widen that type.",
)
def merge_may_not_fit(view: View) -> Iterator[Finding]:
    """An input of a MERGE is not always of the type that the MERGE promises."""
    for target, misfit in view.once(_misfits):
        if misfit.fit is Fit.RUNTIME and target.strict:
            yield _told(target, misfit)


@dataclass(frozen=True, slots=True)
class _Target:
    """An expression and the type that is needed in its place; `strict` where it must fit always."""

    path: Path
    expression: Expression
    known: Proofs
    needed: TypeSchema
    strict: bool = False


def _told(target: _Target, misfit: Misfit) -> Finding:
    key = target.path[1]
    what = f"{ref_text(misfit.part)} at '{key}'" if isinstance(misfit.part, Ref) else f"The value at '{key}'"
    path = (*target.path, *misfit.path)
    if misfit.missing is not None:
        return Finding(path, f"{what} lacks '{misfit.missing}', which is required here.")
    if misfit.extra is not None:
        return Finding(
            path, f"There is no place for '{misfit.extra}' in {type_text(misfit.target)} at '{key}'."
        )
    how = "can never be" if misfit.fit is Fit.NEVER else "may not be"
    return Finding(
        path, f"{what}, of type {type_text(misfit.source)}, {how} of type {type_text(misfit.target)}."
    )


def _misfits(view: View) -> Iterator[tuple[_Target, Misfit]]:
    for target in _targets(view):
        mapper = Mapper(view.typer, view.fitter, target.known)
        for misfit in mapper.misfits(target.expression, target.needed):
            yield target, misfit


def _targets(view: View) -> Iterator[_Target]:
    """Every expression with a sound place and sound references, and what it must be."""
    for place in view.placed:
        if place.known is None or not is_sound(view, place):
            continue
        needed = _needed(view, place)
        if needed is not None:
            strict = isinstance(view.nodes[str(place.path[1])], MergeNode)
            yield _Target(place.path, place.item, place.known, needed, strict)  # type: ignore[arg-type]
        yield from _pieces(place.path, place.item, place.known)


def _needed(view: View, place: Placed) -> TypeSchema | None:
    node = view.nodes[str(place.path[1])]
    rest = place.path[2:]
    match node:
        case TaskNode() | PollNode() if rest[0] == "input":
            return view.definition.handlers[node.handler].parameters.get(str(rest[1]))
        case TaskNode() | PollNode() | WaitNode():
            return TEXT
        case UntilNode():
            return INSTANT
        case MergeNode():
            return node.result
        case SucceedNode():
            return view.definition.output
        case _:
            return None


def _pieces(path: Path, item: object, known: Proofs) -> Iterator[_Target]:
    """The references inside text templates, which must be texts or integers."""
    for part in parts_of(item):  # type: ignore[arg-type]
        inner = (*path, *part.path)
        if isinstance(item, TextExpr):
            yield _Target(inner, part.item, known, PIECE)  # type: ignore[arg-type]
        else:
            yield from _pieces(inner, part.item, known)


def is_sound(view: View, place: Placed) -> bool:
    """Whether all references at a place can be read, so that types can be told."""
    known = place.known
    return known is not None and all(
        ref.fact in known and not view.typer.read(ref, known).unknown for _, ref in refs_of(place.item)
    )


def _sound_refs(view: View) -> Iterator[tuple[Path, Ref, Proofs]]:
    for place in view.placed:
        for inner, ref in refs_of(place.item):
            if place.known is not None and ref.fact in place.known:
                yield (*place.path, *inner), ref, place.known


RULES = (
    field_unknown,
    path_uncertain,
    parameter_unknown,
    parameter_missing,
    value_never_fits,
    value_may_not_fit,
    merge_may_not_fit,
)
