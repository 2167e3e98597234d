"""How findings put things: references, values, types and near matches, each always spelt the same way."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.definition.expressions import FactKey, Ref
from orbit_sdk.definition.value_types import TypeSchema
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

_LONGEST = 80


def ref_text(ref: Ref) -> str:
    """A reference as a person writes it: `submit.failure.code`."""
    return ".".join([str(ref.fact), *ref.steps])


def fact_text(fact: FactKey) -> str:
    """A fact in words."""
    what = {"result": "result", "failure": "failure", "meta": "meta data"}[fact.of]
    return f"the {what} of '{fact.step or fact.source}'"


def value_text(value: Json) -> str:
    """A value as JSON, shortened."""
    return _short(canonical_json(value))


def values_text(values: Iterable[Json]) -> str:
    """Values as a list."""
    return ", ".join(value_text(value) for value in values)


def type_text(schema: TypeSchema) -> str:
    """A type as JSON, shortened."""
    return _short(canonical_json(schema.model_dump(by_alias=True, exclude_unset=True)))


def article(kind: str) -> str:
    """`a TASK`, `an END`."""
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def near(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'cancel_order'?`, or nothing when nothing is near."""
    import difflib

    found = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean '{found[0]}'?" if found else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
