"""The JSON Schema of the worker socket's frames, written from the models that read them."""

from __future__ import annotations

import json
from functools import reduce
from operator import or_
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orbit_sdk.protocol.worker import SERVER_MESSAGES, WORKER_MESSAGES, Message

PATH = "schemas/worker-protocol.v1.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "Orbit worker protocol, version 1: one frame"
_REFERENCE = "#/$defs/{model}"


class FrameSchema(GenerateJsonSchema):
    """Without generated titles, and with the grammar of keys where JSON Schema has it: `propertyNames`."""

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": "object"}
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        if names := {key: value for key, value in keys.items() if key not in ("type", "title")}:
            found["propertyNames"] = names
        if "values_schema" in schema:
            found["additionalProperties"] = self.generate_inner(schema["values_schema"])
        self.update_with_validations(found, schema, self.ValidationsMapping.object)
        return found

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - the signature of the base class
        return False

    def get_title_from_name(self, name: str) -> str:  # noqa: ARG002 - the signature of the base class
        return ""


def _union(models: tuple[type[Message], ...], defs: dict[str, Any]) -> dict[str, Any]:
    """The models of one direction as a union told apart by `type`; their definitions go into `defs`."""
    union: Any = Annotated[reduce(or_, models), Field(discriminator="type")]
    schema = TypeAdapter[Any](union).json_schema(schema_generator=FrameSchema, ref_template=_REFERENCE)
    defs.update(schema["$defs"])
    return {"oneOf": schema["oneOf"], "discriminator": schema["discriminator"]}


def worker_schema() -> dict[str, Any]:
    """The schema as JSON: `WorkerFrame` is what a worker sends, `ServerFrame` what a server sends."""
    defs: dict[str, Any] = {}
    worker, server = _union(WORKER_MESSAGES, defs), _union(SERVER_MESSAGES, defs)
    for model in defs.values():
        model.pop("title", None)
        if "type" in model.get("properties", {}) and "const" in model["properties"]["type"]:
            # The models fill it in by themselves; on the wire it is what tells frames apart.
            model["required"] = ["type", *model.get("required", [])]
            model["properties"]["type"].pop("default", None)
    defs["WorkerFrame"], defs["ServerFrame"] = worker, server
    frames = [{"$ref": "#/$defs/WorkerFrame"}, {"$ref": "#/$defs/ServerFrame"}]
    return {"$schema": DIALECT, "title": TITLE, "anyOf": frames, "$defs": defs}


def outputs() -> dict[str, str]:
    """The generated files of this module."""
    return {PATH: json.dumps(worker_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"}
