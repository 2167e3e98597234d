"""The one family of errors that Orbit raises on purpose.

    OrbitError
    ├── InvalidArgument      INVALID_ARGUMENT      the request itself is wrong
    ├── Unauthenticated      UNAUTHENTICATED       no valid credential
    ├── PermissionDenied     PERMISSION_DENIED     a valid credential without this right
    ├── NotFound             NOT_FOUND             absent, or out of the caller's scope
    ├── Conflict             CONFLICT              the same identity with another content
    ├── FailedPrecondition   FAILED_PRECONDITION   wrong state or expected version
    ├── Gone                 GONE                  the key of something purged long ago
    ├── PayloadTooLarge      PAYLOAD_TOO_LARGE     a size limit
    ├── ResourceExhausted    RESOURCE_EXHAUSTED    quota, backlog or rate; try again later
    ├── Unavailable          UNAVAILABLE           a database away or a row damaged
    └── Internal             INTERNAL              a bug

An error carries a stable code, one sentence for a person, and details that name fields. It is also
a value: a refused command returns one without raising it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Code",
    "Conflict",
    "Detail",
    "FailedPrecondition",
    "Gone",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OrbitError",
    "PayloadTooLarge",
    "PermissionDenied",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "error_of",
]


class Code(StrEnum):
    """The closed set of error codes; names never change meaning."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    GONE = "GONE"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that is wrong: the field's path in the request, and the reason in a sentence."""

    field: str
    reason: str


class OrbitError(Exception):
    """Base of every error of Orbit; `code`, `message` and `details` are stable for callers.

    `retry_after_ms` is set where waiting is known to help (RESOURCE_EXHAUSTED, UNAVAILABLE).
    """

    code: Code = Code.INTERNAL

    def __init__(
        self,
        message: str,
        details: Iterable[Detail] = (),
        *,
        code: Code | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.message = message
        self.details: tuple[Detail, ...] = tuple(details)
        self.retry_after_ms = retry_after_ms

    def __str__(self) -> str:
        lines = [self.message, *(f"  {detail.field}: {detail.reason}" for detail in self.details)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code.value}, {self.message!r}, {list(self.details)!r})"


class InvalidArgument(OrbitError):
    """The request itself is wrong; sending it again cannot help."""

    code = Code.INVALID_ARGUMENT

    @classmethod
    def at(cls, field: str, reason: str) -> InvalidArgument:
        """The usual case: one field, one reason."""
        return cls(f"{field} {reason}", [Detail(field, reason)])


class Unauthenticated(OrbitError):
    """No credential, or one that is unknown, expired or revoked."""

    code = Code.UNAUTHENTICATED


class PermissionDenied(OrbitError):
    """The credential lacks the permission, the queue or the definition right."""

    code = Code.PERMISSION_DENIED


class NotFound(OrbitError):
    """Absent, or outside the caller's scope; the two cannot be told apart."""

    code = Code.NOT_FOUND


class Conflict(OrbitError):
    """The same identity was used before with another content."""

    code = Code.CONFLICT


class FailedPrecondition(OrbitError):
    """The thing is in another state or version than the request expects; the message says which."""

    code = Code.FAILED_PRECONDITION


class Gone(OrbitError):
    """The key belongs to something that was purged; it is not done again."""

    code = Code.GONE


class PayloadTooLarge(OrbitError):
    """A body or a value is larger than its limit."""

    code = Code.PAYLOAD_TOO_LARGE


class ResourceExhausted(OrbitError):
    """A quota, a backlog or a rate is used up; nothing was stored."""

    code = Code.RESOURCE_EXHAUSTED


class Unavailable(OrbitError):
    """The database cannot be reached, or a stored row is damaged."""

    code = Code.UNAVAILABLE


class Internal(OrbitError):
    """Something that should be impossible happened."""

    code = Code.INTERNAL


_CLASSES: dict[Code, type[OrbitError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        Unauthenticated,
        PermissionDenied,
        NotFound,
        Conflict,
        FailedPrecondition,
        Gone,
        PayloadTooLarge,
        ResourceExhausted,
        Unavailable,
        Internal,
    )
}


def error_of(
    code: Code, message: str, details: Iterable[Detail] = (), *, retry_after_ms: int | None = None
) -> OrbitError:
    """The error object of a code, as when an answer comes back over the wire."""
    return _CLASSES[code](message, details, retry_after_ms=retry_after_ms)
