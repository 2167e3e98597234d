"""The HTTP interface as OpenAPI 3.1, made from the route table and the wire models."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from orbit_sdk.protocol.common import ErrorBody
from orbit_server.api.errors import STATUS
from orbit_server.api.query import CURSOR_BYTES
from orbit_server.api.routes import PATH_PARAMETERS, Route

_REF: Final = "#/components/schemas/{model}"
_ABOUT: Final = (
    "Durable tasks and workflows. Counters are decimal texts, instants RFC 3339 in UTC, cursors opaque texts "
    f"of at most {CURSOR_BYTES} bytes. An optional field that is absent stands for null."
)
_REQUEST_ID: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_RETRY_AFTER: Final = {
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
}


def openapi_document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole document; equal tables give equal documents."""
    routes = tuple(routes)
    names, schemas = _schemas(routes)
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Orbit",
            "version": "1",
            "description": _ABOUT,
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(route) for route in routes)],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Error": _error_response()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(routes: tuple[Route, ...]) -> tuple[dict[type[BaseModel], str], dict[str, Any]]:
    """The name of every model, and all schemas by name."""
    models: dict[type[BaseModel], None] = {ErrorBody: None}
    for route in routes:
        models |= dict.fromkeys(model for model in (route.body, route.answer) if model is not None)
    found, document = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    names = {model: found[model, "validation"]["$ref"].rpartition("/")[2] for model in models}
    definitions = {_clean(name): _renamed(schema) for name, schema in sorted(document["$defs"].items())}
    definitions["Error"] = {
        "type": "object",
        "required": ["request_id", "error"],
        "properties": {"request_id": _REQUEST_ID, "error": {"$ref": _REF.format(model="ErrorBody")}},
    }
    return {model: _clean(name) for model, name in names.items()}, definitions


def _clean(name: str) -> str:
    """`Page_Task_` of a generic model is read as `PageTask`."""
    return re.sub(r"[^A-Za-z0-9]+", "", name)


def _renamed(schema: Any) -> Any:
    if isinstance(schema, dict):
        renamed = {
            key: _REF.format(model=_clean(value.rpartition("/")[2])) if key == "$ref" else _renamed(value)
            for key, value in schema.items()
        }
        if renamed.get("type") == "string" and isinstance(renamed.get("default"), int):
            renamed["default"] = str(renamed["default"])  # a counter's default, as it is written
        return renamed
    return [_renamed(item) for item in schema] if isinstance(schema, list) else schema


def _operation(route: Route, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [_tag(route)],
        "parameters": _parameters(route),
        "responses": {
            str(route.status): _answer(route, names),
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    if route.permission is not None:
        operation["security"] = [{"token": []}]
        other = "" if route.instead is None else f" or `{route.instead}`"
        operation["description"] = f"Needs the permission `{route.permission}`{other}."
    if route.body is not None:
        schema = {"$ref": _REF.format(model=names[route.body])}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": PATH_PARAMETERS[name].schema}
        for name in route.parameters
    ]
    found += [
        {
            "name": parameter.name,
            "in": "query",
            "required": False,
            "description": parameter.description,
            "schema": dict(parameter.schema),
        }
        for parameter in route.query
    ]
    if route.idempotency == "required":
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "description": "The identity of this request: the same key and content are answered as "
                "before, the same key with other content is a CONFLICT.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
            }
        )
    return found


def _answer(route: Route, names: dict[type[BaseModel], str]) -> dict[str, Any]:
    if route.answer is None:
        kind = "application/json" if route.path.endswith(".json") else "text/plain"
        return {"description": route.summary, "content": {kind: {"schema": {}}}}
    schema = {
        "type": "object",
        "required": ["request_id", "data"],
        "properties": {"request_id": _REQUEST_ID, "data": {"$ref": _REF.format(model=names[route.answer])}},
    }
    return {"description": route.summary, "content": {"application/json": {"schema": schema}}}


def _error_response() -> dict[str, Any]:
    codes = ", ".join(f"{code.value} ({status})" for code, status in STATUS.items())
    return {
        "description": f"The request failed. Codes: {codes}.",
        "headers": _RETRY_AFTER,
        "content": {"application/json": {"schema": {"$ref": _REF.format(model="Error")}}},
    }


def _tag(route: Route) -> str:
    return route.segments[1] if route.segments[0] == "v1" else "operations"


def _operation_id(route: Route) -> str:
    words = [part.strip("{}").replace(".", "_") for part in route.segments if part != "v1"]
    return "_".join([route.method.lower(), *words])
