"""The static type of every expression, with what is certain at its place taken into account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orbit_sdk.check.fact_types import (
    INSTANCE,
    NULL,
    SIGNAL_META,
    TEXT,
    constant,
    failure_type,
    record,
    union,
)
from orbit_sdk.check.fits import ANY, Atom, Fitter
from orbit_sdk.check.narrow import Certain, Proofs
from orbit_sdk.definition.expressions import ArrayExpr, Const, Expression, FactKey, ObjectExpr, Ref, TextExpr
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import MergeNode, Node, PollNode, TaskNode, WaitNode
from orbit_sdk.definition.value_types import AnyType, ArrayType, EnumType, ObjectType, TypeSchema


@dataclass(frozen=True, slots=True)
class Reading:
    """What following a path gives: a type, or (`unknown`) that no value has the property at `depth`.

    `through` is the depth at which the path may meet something that is no object, and would misfit at run
    time. `names` are the properties that are known there.
    """

    type: TypeSchema
    depth: int = 0
    unknown: bool = False
    through: int | None = None
    names: tuple[str, ...] = ()


class Typer:
    """Types of facts and expressions of one document whose references are sound."""

    def __init__(self, definition: Definition, fitter: Fitter) -> None:
        self._definition = definition
        self._fitter = fitter
        self._facts: dict[FactKey, TypeSchema] = {}
        # By identity, which is quick; what is identified is kept so that no other object can take its place.
        self._readings: dict[tuple[int, int], tuple[Ref, Proofs, Reading]] = {}

    def fact(self, key: FactKey) -> TypeSchema:
        """The type of a fact that exists."""
        found = self._facts.get(key)
        if found is None:
            found = self._facts[key] = self._fact(key)
        return found

    def of(self, expression: Expression, known: Proofs) -> TypeSchema:
        """The type of an expression; anything, where a reference inside it leads nowhere."""
        match expression:
            case Const(const=value):
                return constant(value)
            case Ref():
                return self.read(expression, known).type
            case TextExpr():
                return TEXT
            case ObjectExpr(object=fields):
                return record({name: self.of(value, known) for name, value in fields.items()})
            case ArrayExpr(array=items):
                return _array([self.of(item, known) for item in items])

    def read(self, ref: Ref, known: Proofs) -> Reading:
        """Follow a reference. An absent optional reads as null."""
        asked = (id(ref), id(known))
        answer = self._readings.get(asked)
        if answer is None:
            answer = self._readings[asked] = (ref, known, self._read(ref, known))
        return answer[2]

    def _read(self, ref: Ref, known: Proofs) -> Reading:
        fact = ref.fact
        current = self.fact(fact)
        through: int | None = None
        for depth, name in enumerate(ref.steps):
            atoms = self.present(current, Certain(fact, ref.steps[:depth]) in known)
            found, partly = _step(atoms, name)
            if not found:
                return Reading(ANY, depth, unknown=True, names=_names(atoms))
            if partly and through is None:
                through = depth
            current = _union(found)
        if Certain(fact, ref.steps) in known:
            current = _union(self.present(current, certain=True))
        return Reading(current, len(ref.steps), through=through)

    def present(self, schema: TypeSchema, certain: bool) -> Sequence[Atom]:
        """The alternatives of a type, without null where it is certain to be there."""
        atoms = self._fitter.atoms(schema)
        return tuple(_without_null(atoms)) if certain else atoms

    def _fact(self, key: FactKey) -> TypeSchema:
        if key.source == "input":
            return self._definition.input
        if key.source == "instance":
            return INSTANCE
        if key.of == "meta":
            return SIGNAL_META
        return _step_fact(self._definition, self._definition.nodes[key.step], key)


def _step_fact(definition: Definition, node: Node, key: FactKey) -> TypeSchema:
    match node:
        case TaskNode() if key.of == "failure":
            return failure_type(definition.handlers[node.handler])
        case TaskNode() | PollNode():
            return definition.handlers[node.handler].result
        case WaitNode():
            return definition.signals[node.signal].body
        case MergeNode():
            return node.result
        case _:
            raise LookupError(f"{key} is no fact")


def _step(atoms: Sequence[Atom], name: str) -> tuple[list[TypeSchema], bool]:
    """The types of one property over all alternatives, and whether some alternative is no object.

    Nothing is found where no alternative declares the property, even if an open object might hold it.
    """
    found: list[TypeSchema] = []
    rest: list[TypeSchema] = []
    partly = False
    for atom in atoms:
        match atom:
            case ObjectType():
                declared, other = _property(atom, name)
                found += declared
                rest += other
            case AnyType():
                found.append(ANY)
                partly = True
            case EnumType(enum=values):
                inside = [value for value in values if isinstance(value, dict)]
                found += [constant(value[name]) for value in inside if name in value]
                rest += [NULL for value in inside if name not in value]
                partly = partly or len(inside) < len(values)
            case _:
                partly = True
    return ([*found, *rest] if found else []), partly


def _property(schema: ObjectType, name: str) -> tuple[list[TypeSchema], list[TypeSchema]]:
    """The declared type of a property, and what else reading it may give."""
    kind = schema.fields.get(name)
    if kind is not None:
        return [kind], ([] if name in schema.required_names else [NULL])
    if schema.additional is None:
        return [], [ANY]
    return ([] if schema.additional is False else [schema.additional]), [NULL]


def _names(atoms: Sequence[Atom]) -> tuple[str, ...]:
    return tuple(sorted({name for atom in atoms if isinstance(atom, ObjectType) for name in atom.fields}))


def _without_null(atoms: Sequence[Atom]) -> Iterator[Atom]:
    for atom in atoms:
        if not isinstance(atom, EnumType):
            yield atom
            continue
        values = tuple(value for value in atom.enum if value is not None)
        if len(values) == len(atom.enum):
            yield atom
        elif values:
            yield EnumType.model_construct(enum=values)


def _union(parts: Sequence[TypeSchema]) -> TypeSchema:
    if not parts:  # null where null is excluded: the place is never reached
        return ANY
    return parts[0] if len(parts) == 1 else union(parts)


def _array(items: Sequence[TypeSchema]) -> ArrayType:
    return ArrayType.model_construct(
        type="array", items=_union(items) if items else None, min_items=len(items), max_items=len(items)
    )
