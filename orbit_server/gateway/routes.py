"""`GET /v1/worker`: from an HTTP upgrade to a session."""

from __future__ import annotations

from quart import Blueprint, Response, websocket

from orbit_sdk.errors import Code, OrbitError, Unauthenticated
from orbit_server.gateway.connection import QuartSocket
from orbit_server.gateway.gateway import Gateway

__all__ = ["gateway_blueprint"]

_STATUS = {Code.UNAUTHENTICATED: 401, Code.PERMISSION_DENIED: 403, Code.RESOURCE_EXHAUSTED: 429}
_SCHEME = "Bearer "


def gateway_blueprint(gateway: Gateway) -> Blueprint:
    """The route of the worker socket. The app must use `BoundedWebsocketConnection`."""
    blueprint = Blueprint("worker_socket", __name__)

    async def worker_socket() -> Response | None:
        try:
            principal = await gateway.admit(_token(websocket.headers.get("Authorization", "")))
        except OrbitError as error:
            status = _STATUS.get(error.code, 503)
            return Response(error.message, status, content_type="text/plain; charset=utf-8")
        await websocket.accept()
        await gateway.serve(principal, QuartSocket(websocket._get_current_object()))  # type: ignore[attr-defined]  # noqa: SLF001
        return None

    blueprint.add_websocket("/v1/worker", "worker_socket", worker_socket)
    return blueprint


def _token(header: str) -> str:
    if not header.startswith(_SCHEME):
        raise Unauthenticated("the header Authorization: Bearer <token> is missing")
    return header.removeprefix(_SCHEME)
