"""The JSON Schema of a definition, written from the models that read it."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from orbit_sdk.definition.expressions import Condition, Expression
from orbit_sdk.definition.models import Definition
from orbit_sdk.definition.nodes import Node
from orbit_sdk.definition.value_types import TypeSchema

PATH = "schemas/definition.v1.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
UNIONS: dict[str, Any] = {
    "Expression": Expression,
    "Condition": Condition,
    "TypeSchema": TypeSchema,
    "Node": Node,
}


class DefinitionSchema(GenerateJsonSchema):
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


def definition_schema() -> dict[str, Any]:
    """The schema as JSON, its definitions sorted by name."""
    schema = Definition.model_json_schema(by_alias=True, schema_generator=DefinitionSchema)
    for part in (schema, *schema["$defs"].values()):
        part.pop("title", None)
    _name_unions(schema)
    for part in _objects(schema):
        # None stands for "absent" in the models; it is not a value that a document could hold.
        if part.get("default", 0) is None:
            del part["default"]
    return {"$schema": DIALECT, "title": "Orbit workflow definition, schema_version 1", **schema}


def _name_unions(schema: dict[str, Any]) -> None:
    """The unions that stand in many places get a name of their own, as they have in the code."""
    defs: dict[str, Any] = schema["$defs"]
    for name, union in UNIONS.items():
        found = TypeAdapter[Any](union).json_schema(by_alias=True, schema_generator=DefinitionSchema)["oneOf"]
        for part in _objects(schema):
            if part.get("oneOf") == found:
                del part["oneOf"]
                part["$ref"] = f"#/$defs/{name}"
        defs[name] = {"oneOf": found}


def _objects(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [value] if isinstance(value, dict) else []
    for item in inner:
        found += _objects(item)
    return found


def outputs() -> dict[str, str]:
    """The generated files of this module."""
    return {PATH: json.dumps(definition_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"}
