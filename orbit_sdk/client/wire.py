"""How requests become bytes, and answers become values or errors; shared by both clients. No I/O."""

from __future__ import annotations

import email.utils
import json
import random
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final
from urllib.parse import urlsplit

from orbit_sdk.errors import Code, Detail, InvalidArgument, OrbitError, Unavailable, error_of
from orbit_sdk.values.canonical import canonical_bytes

RETRIED_STATUS: Final = frozenset({429, 502, 503, 504})
DOUBTFUL_STATUS: Final = 503
DOUBTFUL_TRIES: Final = 3
"""A 503 that does not say when to come back may be a damaged row: it is not asked for ever."""

Params = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `safe`: repeating it cannot do anything twice (a read, or it carries its own identity)."""

    method: str
    path: str
    params: Params | None = None
    body: Any = None
    key: str | None = None
    safe: bool = True
    timeout: float | None = None

    def headers(self, token: str) -> dict[str, str]:
        headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
        if self.body is not None:
            headers["content-type"] = "application/json"
        if self.key is not None:
            headers["idempotency-key"] = self.key
        return headers

    def query(self) -> dict[str, str]:
        shown: dict[str, str] = {}
        for name, value in (self.params or {}).items():
            if value is not None:
                shown[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return shown

    def content(self) -> bytes | None:
        return None if self.body is None else canonical_bytes(self.body)


def spoken(**fields: Any) -> dict[str, Any]:
    """The fields that say something; what is None is left out of a body."""
    return {name: value for name, value in fields.items() if value is not None}


def new_key() -> str:
    """An Idempotency-Key for a request whose caller gave none: fresh, and kept over its repeats."""
    return secrets.token_hex(16)


def check_address(url: str, token: str) -> None:
    """Raises InvalidArgument for what no request could be sent with."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgument.at("url", f"is {url!r}; write http://host:port or https://host")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidArgument.at("token", "holds characters that no token has")


def answer_of(status: int, content: bytes, retry_after: str | None) -> Any:
    """The `data` of a success, or the error raised. Raises Unavailable for what is not an answer of Orbit."""
    try:
        envelope = json.loads(content)
    except ValueError:
        raise Unavailable(f"the server answered {status} with something that is not JSON") from None
    if not isinstance(envelope, dict):
        raise Unavailable(f"the server answered {status} with something that is not an envelope")
    if status < 400 and "data" in envelope:
        return envelope["data"]
    error = envelope.get("error")
    if not isinstance(error, dict):
        raise Unavailable(f"the server answered {status} without saying why")
    raise _error(error, retry_after)


def _error(error: Mapping[str, Any], retry_after: str | None) -> OrbitError:
    details = [
        Detail(str(item.get("field", "")), str(item.get("reason", "")))
        for item in error.get("details") or []
        if isinstance(item, dict)
    ]
    try:
        code = Code(str(error.get("code")))
    except ValueError:
        code = Code.INTERNAL
    return error_of(code, str(error.get("message", "")), details, retry_after_ms=_retry_after_ms(retry_after))


def _retry_after_ms(text: str | None) -> int | None:
    """`Retry-After` in either form: seconds, or an HTTP date."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text) * 1000
    try:
        at = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int((at.timestamp() - time.time()) * 1000))


@dataclass(slots=True)
class Patience:
    """How long one call is repeated, and how long to pause before the next try (seconds)."""

    until: float
    backoff: float
    max_backoff: float
    tries: int = 0
    doubts: int = 0

    def pause(self, asked_ms: int | None = None, *, doubtful: bool = False) -> float | None:
        """Seconds to wait before the next try, or None when it is time to give up."""
        self.tries += 1
        self.doubts += doubtful
        if self.doubts > DOUBTFUL_TRIES:
            return None
        longest = min(self.max_backoff, self.backoff * 2 ** (self.tries - 1))
        wait = random.uniform(0, longest)  # noqa: S311  # spreads clients out, keeps no secret
        if asked_ms is not None:
            wait += asked_ms / 1000
        return wait if time.monotonic() + wait < self.until else None
