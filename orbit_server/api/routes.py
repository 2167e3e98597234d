"""One row per route. The table drives routing, OpenAPI and the permission matrix; a route without a row
cannot exist.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel

from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.ids import is_id
from orbit_sdk.values.names import NAME_PATTERN, STEP_KEY_PATTERN, is_name, is_queue_name, is_step_key
from orbit_server.api.call import Call
from orbit_server.api.query import Parameter

Handler: TypeAlias = Callable[[Call], Awaitable[Any]]
Idempotency: TypeAlias = Literal["none", "required", "natural"]
Segments: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    Args:
        path: with parameters in braces; their names are keys of `PATH_PARAMETERS`.
        permission: what the credential must have; None for everybody, without a credential.
        answer: model of `data`, for OpenAPI and the tests; the answers themselves are made as plain dicts.
        handler: gives `data`.
        summary: one line for people.
        body: model of the body; None when the route takes none.
        instead: a second permission, with which the route opens as well; its handler then looks at which one
            fits what is asked for.
        item: for a batch, the model of one item; each item carries its own idempotency key.
        query: what may stand behind the question mark; nothing by default.
        idempotency: `required` asks for the header; `natural` has its identity in the body or path.
        status: of success.
    """

    method: Literal["GET", "POST"]
    path: str
    permission: str | None
    answer: type[BaseModel] | None
    handler: Handler
    summary: str
    body: type[BaseModel] | None = None
    item: type[BaseModel] | None = None
    query: tuple[Parameter, ...] = ()
    idempotency: Idempotency = "none"
    status: int = 200
    instead: str | None = None
    segments: Segments = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.path.strip("/").split("/")))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters in the path, in order."""
        return tuple(part[1:-1] for part in self.segments if part.startswith("{"))


@dataclass(frozen=True, slots=True)
class PathParameter:
    """A part of the path. `parse` gives its value or raises ValueError."""

    schema: dict[str, Any]
    parse: Callable[[str], str | int]


def _text(good: Callable[[str], bool], reason: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not good(text):
            raise ValueError(reason)
        return text

    return parse


def _version(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= 2**31 - 1):
        raise ValueError("must be a whole number from 1 on")
    return int(text)


_ID = PathParameter(
    {"type": "string", "pattern": "^[0-9a-f]{32}$"}, _text(is_id, "must be 32 lower-case hex digits")
)
PATH_PARAMETERS: Final[dict[str, PathParameter]] = {
    "workflow_id": _ID,
    "bulk_id": _ID,
    "task_id": _ID,
    "event_id": _ID,
    "signal_id": _ID,
    "wait_id": _ID,
    "credential_id": _ID,
    "queue": PathParameter(
        {"type": "string", "pattern": NAME_PATTERN, "maxLength": 128},
        _text(is_queue_name, "must be a queue's name"),
    ),
    "schedule_id": _ID,
    "subscription": PathParameter(
        {"type": "string", "pattern": NAME_PATTERN, "maxLength": 128}, _text(is_name, "must be a name")
    ),
    "definition_id": PathParameter(
        {"type": "string", "pattern": NAME_PATTERN, "maxLength": 128}, _text(is_name, "must be a name")
    ),
    "digest": PathParameter(
        {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        _text(
            lambda text: re.fullmatch("[0-9a-f]{64}", text) is not None, "must be 64 lower-case hex digits"
        ),
    ),
    "version": PathParameter({"type": "integer", "minimum": 1, "maximum": 2**31 - 1}, _version),
    "step_key": PathParameter(
        {"type": "string", "pattern": STEP_KEY_PATTERN}, _text(is_step_key, "must be the key of a step")
    ),
}


def parse_path(route: Route, found: tuple[str, ...]) -> dict[str, Any]:
    """The values of a path's parameters; InvalidArgument naming the one that is malformed."""
    values: dict[str, Any] = {}
    for name, text in zip(route.parameters, found, strict=True):
        try:
            values[name] = PATH_PARAMETERS[name].parse(text)
        except ValueError as error:
            raise InvalidArgument.at(name, str(error)) from None
    return values


class Router:
    """Finds the row of a request. A literal part of a path goes before a parameter."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root: dict[str, Any] = {}
        for route in routes:
            node = self._root
            for part in route.segments:
                node = node.setdefault("{}" if part.startswith("{") else f"/{part}", {})
            if route.method in node:
                raise ValueError(f"{route.method} {route.path} stands in the table twice")
            node[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """The row and the texts of its parameters, or None. HEAD is answered as GET."""
        if not path.startswith("/"):
            return None
        return _below(self._root, path[1:].split("/"), "GET" if method == "HEAD" else method)


def _below(node: dict[str, Any], parts: list[str], method: str) -> tuple[Route, tuple[str, ...]] | None:
    """The row below a node. A definition may be called as a literal part is, so both ways are looked at."""
    if not parts:
        route = node.get(method)
        return None if route is None else (route, ())
    part, *rest = parts
    literal = node.get(f"/{part}")
    found = None if literal is None else _below(literal, rest, method)
    if found is not None or not part or "{}" not in node:
        return found
    behind = _below(node["{}"], rest, method)
    return None if behind is None else (behind[0], (part, *behind[1]))
