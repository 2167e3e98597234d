"""The web application: from a request to an answer, along the route table.

Rows of the table are served before the framework's own routing; everything else (the worker socket, pages) is
ordinary Quart.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any, Final, cast

import orjson
from quart import Quart, Response
from quart.typing import ResponseTypes
from werkzeug.exceptions import HTTPException

from orbit_sdk.errors import (
    Internal,
    InvalidArgument,
    OrbitError,
    ResourceExhausted,
    Unauthenticated,
)
from orbit_server.api.bodies import BODY_BYTES, read_body
from orbit_server.api.call import Call
from orbit_server.api.connection import Arrived, Plain, TableConnection
from orbit_server.api.errors import STATUS, error_bytes, error_headers, error_of_http
from orbit_server.api.operations import Raw
from orbit_server.api.query import parse_query
from orbit_server.api.routes import Route, Router, parse_path
from orbit_server.api.server import Server
from orbit_server.api.table import ROUTES
from orbit_server.clock import random_hex
from orbit_server.platform.permissions import Names, Principal, SignalRights

log = logging.getLogger(__name__)

_JSON: Final = b"application/json"
_KEY = re.compile(r"[\x21-\x7e]{1,200}", re.ASCII)
_NOBODY: Final = Principal("", "", "nobody", frozenset(), Names.of(()), Names.of(()), SignalRights.of(()))
"""Who asks on routes that need no credential."""


class OrbitApp(Quart):
    """Quart with the route table in front."""

    asgi_http_class = TableConnection

    def __init__(self, server: Server, routes: tuple[Route, ...] = ROUTES) -> None:
        super().__init__("orbit_server", static_folder=None, template_folder=None)
        self.url_map.merge_slashes = False
        self.config["MAX_CONTENT_LENGTH"] = 4 * BODY_BYTES
        self.config["BODY_TIMEOUT"] = server.settings.body_timeout_ms / 1000
        self.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
        self._server = server
        self._router = Router(routes)
        self.register_error_handler(HTTPException, self._refused)

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]] | None:
        """The row of a request with the texts of its path's parameters, or None."""
        return self._router.find(method, path)

    async def answer(self, arrived: Arrived, route: Route, texts: tuple[str, ...]) -> Plain:
        """Serve a row of the table."""
        server = self._server
        request_id = random_hex(32)
        began_us = server.clock.monotonic_us()
        server.health.enter()
        try:
            answer = await self._serve(arrived, request_id, route, texts)
        except asyncio.CancelledError:
            raise  # the caller has gone; what was submitted goes on
        except OrbitError as error:
            answer = self._failed(request_id, route, error)
        except Exception as error:  # noqa: BLE001  # a bug in one request is that request's
            answer = self._failed(request_id, route, _internal(error))
        finally:
            server.health.leave()
        took_us = server.clock.monotonic_us() - began_us
        server.http.answers[route.method, route.path, answer.status] += 1
        server.http.took_us[route.method, route.path] += took_us
        if server.settings.access_log:
            _log_access(request_id, route, answer.status, took_us)
        return answer

    async def _serve(self, arrived: Arrived, request_id: str, route: Route, texts: tuple[str, ...]) -> Plain:
        server = self._server
        principal = _NOBODY
        if route.permission is not None:
            if server.health.requests > server.settings.requests_max:
                raise ResourceExhausted("too many requests are in work", retry_after_ms=1_000)
            principal = await server.authenticator.authenticate(_token(arrived))
            if route.instead is None or not principal.allows(route.instead):
                principal.require(route.permission)
        call = Call(
            server=server,
            principal=principal,
            path=parse_path(route, texts) if texts else {},
            query=parse_query(arrived.query, route.query) if arrived.query else {},
            key=_idempotency_key(arrived, route),
            body=await read_body(arrived, route, server.settings),
            gone=arrived.gone,
        )
        data = await route.handler(call)
        if isinstance(data, Raw):
            return _plain(data.body, route.status, data.content_type.encode())
        body = b'{"request_id":"%b","data":%b}' % (request_id.encode(), orjson.dumps(data))
        return _plain(body, route.status, _JSON)

    def _failed(self, request_id: str, route: Route, error: OrbitError) -> Plain:
        if STATUS[error.code] >= 500:
            log.warning(
                "%s: %s",
                error.code.value,
                error.message,
                extra={"request_id": request_id, "route": route.path},
                exc_info=error if isinstance(error, Internal) and error.__cause__ is not None else None,
            )
        return _failure(request_id, error)

    async def _refused(self, error: HTTPException) -> ResponseTypes:
        """What no row and no page serves."""
        answer = _failure(random_hex(32), error_of_http(error))
        headers = [(name.decode(), value.decode()) for name, value in answer.headers]
        return Response(answer.body, answer.status, cast(Any, headers))


def create_app(server: Server) -> OrbitApp:
    """The application of a server. Worker socket and pages are added by whoever has them."""
    return OrbitApp(server)


def _plain(body: bytes, status: int, kind: bytes, *more: tuple[str, str]) -> Plain:
    return Plain(
        status,
        (
            (b"content-type", kind),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            *((name.lower().encode(), value.encode()) for name, value in more),
        ),
        body,
    )


def _failure(request_id: str, error: OrbitError) -> Plain:
    return _plain(error_bytes(request_id, error), STATUS[error.code], _JSON, *error_headers(error))


def _internal(error: Exception) -> Internal:
    internal = Internal("the request failed; the server's log names this request")
    internal.__cause__ = error
    return internal


def _token(arrived: Arrived) -> str:
    found = arrived.headers.get(b"authorization", ())
    if len(found) != 1:
        raise Unauthenticated("an Authorization header with a bearer token is needed")
    scheme, _, token = found[0].partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated("the Authorization header must carry a bearer token")
    return token.strip()


def _idempotency_key(arrived: Arrived, route: Route) -> str | None:
    if route.method == "GET" or route.idempotency == "natural":
        return None
    found = arrived.headers.get(b"idempotency-key", ())
    if route.idempotency == "none":
        if found and route.item is not None:
            raise InvalidArgument.at("Idempotency-Key", "is given per item in a batch, not as a header")
        return None
    if len(found) != 1:
        raise InvalidArgument.at("Idempotency-Key", "is given twice" if found else "is missing")
    if _KEY.fullmatch(found[0]) is None:
        raise InvalidArgument.at(
            "Idempotency-Key", "must be 1 to 200 printable ASCII characters without spaces"
        )
    return found[0]


def _log_access(request_id: str, route: Route, status: int, took_us: int) -> None:
    log.info(
        "request",
        extra={
            "request_id": request_id,
            "method": route.method,
            "route": route.path,
            "status": status,
            "took_us": took_us,
        },
    )
