"""What a condition proves about optionals: a value tested for null is certain behind the test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orbit_sdk.definition.expressions import And, Condition, Const, Eq, FactKey, In, IsNull, Ne, Not, Or, Ref


@dataclass(frozen=True, slots=True)
class Certain:
    """Something inside a fact that is known to be there and not null."""

    fact: FactKey
    path: tuple[str, ...]


Known = FactKey | Certain
"""What can be known at a place: a fact, or that an optional inside one is there."""

Proofs = frozenset[Known]
NOTHING: Proofs = frozenset()


def certain(ref: Ref) -> Proofs:
    """That a reference is there and not null, and so is everything on the way to it."""
    return frozenset(Certain(ref.fact, ref.steps[:length]) for length in range(len(ref.steps) + 1))


def proofs(condition: Condition) -> tuple[Proofs, Proofs]:
    """What is certain where the condition holds, and where it does not."""
    match condition:
        case IsNull(is_null=Ref() as ref):
            return NOTHING, certain(ref)
        case Eq(eq=pair):
            return _equal(pair), NOTHING
        case Ne(ne=pair):
            return NOTHING, _equal(pair)
        case In(in_=members) if isinstance(members.value, Ref) and None not in members.among:
            return certain(members.value), NOTHING
        case Not(not_=inner):
            holds, fails = proofs(inner)
            return fails, holds
        case And(and_=parts):
            return _all_and_any(parts)
        case Or(or_=parts):
            fails, holds = _all_and_any([Not.model_construct(not_=part) for part in parts])
            return holds, fails
        case _:
            return NOTHING, NOTHING


def _equal(pair: tuple[object, object]) -> Proofs:
    """`x = "a"` proves that x is there; `x = null` proves nothing."""
    match pair:
        case (Ref() as ref, Const(const=value)) | (Const(const=value), Ref() as ref) if value is not None:
            return certain(ref)
        case _:
            return NOTHING


def _all_and_any(parts: Iterable[Condition]) -> tuple[Proofs, Proofs]:
    """What is certain where all parts hold, and where some part fails."""
    found = [proofs(part) for part in parts]
    holds: Proofs = NOTHING.union(*(one for one, _ in found))
    fails = found[0][1].intersection(*(one for _, one in found[1:]))
    return holds, fails
