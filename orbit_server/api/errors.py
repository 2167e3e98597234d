"""The only place that knows which HTTP status a code has, and what an error looks like on the wire."""

from __future__ import annotations

from typing import Final

import orjson
from werkzeug.exceptions import HTTPException

from orbit_sdk.errors import Code, InvalidArgument, NotFound, OrbitError, PayloadTooLarge, Unavailable

STATUS: Final[dict[Code, int]] = {
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.FAILED_PRECONDITION: 409,
    Code.GONE: 410,
    Code.PAYLOAD_TOO_LARGE: 413,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.UNAVAILABLE: 503,
    Code.INTERNAL: 500,
}

_COME_BACK_MS: Final = 1_000


def error_json(error: OrbitError) -> dict[str, object]:
    """The body of an error: `{"code", "message", "details": [{"field", "reason"}]}`, and `retry_after_ms`
    where waiting helps.
    """
    body: dict[str, object] = {
        "code": error.code.value,
        "message": error.message,
        "details": [{"field": detail.field, "reason": detail.reason} for detail in error.details],
    }
    wait_ms = _wait_ms(error)
    return body if wait_ms is None else {**body, "retry_after_ms": wait_ms}


def _wait_ms(error: OrbitError) -> int | None:
    if error.retry_after_ms is None and error.code is Code.RESOURCE_EXHAUSTED:
        return _COME_BACK_MS
    return error.retry_after_ms


def error_headers(error: OrbitError) -> list[tuple[str, str]]:
    """Headers that belong to an error: when to come back, and how to authenticate."""
    if error.code is Code.UNAUTHENTICATED:
        return [("WWW-Authenticate", "Bearer")]
    wait_ms = _wait_ms(error)
    if wait_ms is None:
        return []
    return [("Retry-After", str(max(1, -(-wait_ms // 1000))))]


def error_of_http(error: HTTPException) -> OrbitError:
    """What the web framework refuses, in our own words."""
    match error.code:
        case 413:
            return PayloadTooLarge("the body is larger than this route takes")
        case 408:
            return InvalidArgument("the body did not arrive in time")
        case 404 | 405:
            return NotFound("there is no such route")
        case 503:
            return Unavailable("the server is stopping", retry_after_ms=_COME_BACK_MS)
        case _:
            return InvalidArgument("the request cannot be read")


def error_bytes(request_id: str, error: OrbitError) -> bytes:
    """The whole body of a failed request."""
    return orjson.dumps({"request_id": request_id, "error": error_json(error)})
