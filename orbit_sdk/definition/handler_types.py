"""The digest of a handler's types, worked out from a definition: the same that its workers announce."""

from __future__ import annotations

from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.value_types import TypeSchema
from orbit_sdk.values.canonical import digest
from orbit_sdk.values.json_strict import Json

__all__ = ["handler_types_digest"]

_PREFIX = "#/types/"


def handler_types_digest(definition: Definition, key: str) -> str:
    """SHA-256 over parameter and result types of `name@version`, with every named type that they reach.

    KeyError when the definition declares no such handler.
    """
    declared = definition.handlers[key]
    parameters = {name: _json(schema) for name, schema in declared.parameters.items()}
    result = _json(declared.result)
    required: list[Json] = [*sorted(declared.required)]
    reached: dict[str, Json] = {}
    waiting: list[Json] = [*parameters.values(), result]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict):
            target = one.get("$ref")
            name = target.removeprefix(_PREFIX) if isinstance(target, str) else None
            if name is not None and name in definition.types and name not in reached:
                reached[name] = _json(definition.types[name])
                waiting.append(reached[name])
            waiting.extend(one.values())
    return digest({"parameters": parameters, "required": required, "result": result, "types": reached})


def _json(schema: TypeSchema) -> Json:
    dumped: Json = schema.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return dumped
