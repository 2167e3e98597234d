"""Hiding sensitive values from readers without `payloads:read`. What has no known type is hidden whole."""

from __future__ import annotations

from typing import Any, Final

import orjson

from orbit_sdk.definition.masking import MASK, Mask, compile_mask
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import MergeNode, PollNode, TaskNode, WaitNode
from orbit_sdk.definition.value_types import TypeSchema
from orbit_server.weave.definitions.catalog import Compiled


def shown(text: str | None) -> Any:
    """Stored canonical JSON as it is; exact numbers stay exact."""
    return None if text is None else orjson.Fragment(text)


def hidden(text: str | None) -> Any:
    """A value whose type nobody knows."""
    return None if text is None else MASK


class Masks:
    """The masks of one definition, compiled when first needed."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._known: dict[str, Mask | None] = {}

    def input(self, text: str | None) -> Any:
        return self._masked("input", self._definition.input, text)

    def output(self, text: str | None) -> Any:
        return self._masked("output", self._definition.output, text)

    def result(self, step_key: str, text: str | None) -> Any:
        return self._masked(f"step {step_key}", self._result_type(step_key), text)

    def signal(self, name: str, text: str | None) -> Any:
        declared = self._definition.signals.get(name)
        return self._masked(f"signal {name}", None if declared is None else declared.body, text)

    def parameters(self, handler_key: str, text: str | None) -> Any:
        """Parameters of a handler, property by property."""
        declared = self._definition.handlers.get(handler_key)
        if text is None or declared is None:
            return hidden(text)
        values = orjson.loads(text)
        return {
            name: self._value(f"{handler_key} {name}", declared.parameters.get(name), value)
            for name, value in values.items()
        }

    def handler_result(self, handler_key: str, text: str | None) -> Any:
        declared = self._definition.handlers.get(handler_key)
        return self._masked(f"result {handler_key}", None if declared is None else declared.result, text)

    def _masked(self, name: str, schema: TypeSchema | None, text: str | None) -> Any:
        return None if text is None else self._value(name, schema, orjson.loads(text))

    def _value(self, name: str, schema: TypeSchema | None, value: Any) -> Any:
        if name not in self._known:
            self._known[name] = None if schema is None else compile_mask(schema, self._definition.types)
        mask = self._known[name]
        return MASK if mask is None else mask(value)

    def _result_type(self, step_key: str) -> TypeSchema | None:
        node = self._definition.nodes.get(step_key)
        match node:
            case TaskNode() | PollNode():
                return self._definition.handlers[node.handler].result
            case WaitNode():
                return self._definition.signals[node.signal].body
            case MergeNode():
                return node.result
            case _:
                return None


_KEPT_MAX: Final = 1_000
_kept: dict[str, Masks] = {}


def masks_of(compiled: Compiled) -> Masks:
    """The masks of a definition version; versions never change, so they are kept by key and digest."""
    key = f"{compiled.key}:{compiled.digest}"
    masks = _kept.get(key)
    if masks is None:
        if len(_kept) >= _KEPT_MAX:
            _kept.clear()
        masks = _kept[key] = Masks(compiled.definition)
    return masks
