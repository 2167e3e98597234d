"""Bodies, read strictly: the size, then the JSON, then the model. A batch is judged item by item."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ValidationError

from orbit_sdk.definition.problems import invalid
from orbit_sdk.errors import Detail, InvalidArgument, OrbitError
from orbit_sdk.values.json_strict import Json, parse_json
from orbit_sdk.values.limits import Limits
from orbit_server.api.connection import Arrived
from orbit_server.api.routes import Route
from orbit_server.settings import Settings

BODY_BYTES: Final = 1024 * 1024
_JSON_TYPES: Final = frozenset(
    {"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8"}
)


async def read_body(arrived: Arrived, route: Route, settings: Settings) -> Any:
    """The validated body of a request: the route's model, or for a batch a list of models and errors.

    Raises InvalidArgument or PayloadTooLarge; nothing is decided by a body that was read only in part.
    """
    if route.body is None:
        return None
    if arrived.header(b"content-type").lower() not in _JSON_TYPES:
        raise InvalidArgument.at("Content-Type", "must be application/json")
    if arrived.header(b"content-encoding").lower() not in ("", "identity"):
        raise InvalidArgument.at("Content-Encoding", "is not supported; send the body as it is")
    limits, batch = settings.limits, route.item is not None
    most = limits.batch_bytes if batch else min(BODY_BYTES, limits.batch_bytes)
    data = await arrived.body(most, settings.body_timeout_ms / 1000)
    # A value inside the body may be as deep as a value may be; the body itself adds a level, a batch three.
    document = parse_json(data, max_bytes=most, max_depth=limits.json_depth + (3 if batch else 1))
    if route.item is None:
        return _validated(route.body, document)
    return _items(route.item, document, limits)


def _validated(model: type[BaseModel], document: Json) -> BaseModel:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise invalid("the body", error) from None


def _items(model: type[BaseModel], document: Json, limits: Limits) -> list[BaseModel | OrbitError]:
    """Every item by itself, so that one bad item does not stop its neighbours."""
    if (
        not isinstance(document, dict)
        or set(document) != {"items"}
        or not isinstance(document["items"], list)
    ):
        raise InvalidArgument.at("$", 'must be {"items": [...]}')
    items = document["items"]
    if not 1 <= len(items) <= limits.batch_items:
        raise InvalidArgument.at("items", f"has {len(items)} entries; 1 to {limits.batch_items} are allowed")
    found: list[BaseModel | OrbitError] = []
    for place, item in enumerate(items):
        try:
            found.append(model.model_validate(item))
        except ValidationError as error:
            problem = invalid(f"item {place}", error)
            problem.details = tuple(
                Detail(f"items[{place}]{'' if each.field == '$' else '.' + each.field}", each.reason)
                for each in problem.details
            )
            found.append(problem)
    return found
