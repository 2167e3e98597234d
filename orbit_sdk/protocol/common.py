"""What all wire models share: the base classes, ids, instants, counters, pages and the error body.

Requests refuse unknown fields; answers ignore them, so that an older client reads a newer server.
Ids are 32 lower-case hex, instants RFC 3339 in UTC with microseconds, 64-bit counters decimal strings.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from orbit_sdk.values.instants import from_rfc3339, to_rfc3339
from orbit_sdk.values.names import ERROR_CODE_PATTERN, NAME_PATTERN, QUEUE_PATTERN

__all__ = [
    "Answer",
    "BusinessKey",
    "Count",
    "Counter",
    "Digest",
    "ErrorBody",
    "ErrorCode",
    "ErrorDetail",
    "EvidenceText",
    "Group",
    "HandlerName",
    "Id",
    "IdempotencyKey",
    "Instant",
    "JsonValue",
    "Labels",
    "Managed",
    "Match",
    "Message",
    "OnBehalfOf",
    "Page",
    "QueueName",
    "Reason",
    "Request",
    "SignalEvidence",
    "Words",
    "micros_of",
    "moment_of",
]

T = TypeVar("T")

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros_of(moment: datetime) -> int:
    """The microseconds of an aware datetime."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(micros: int) -> datetime:
    """The aware datetime (UTC) of microseconds; ValueError outside the years 0001-9999."""
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError as error:
        raise ValueError("is outside the years 0001-9999") from error


def _instant_text(moment: datetime) -> str:
    return to_rfc3339(micros_of(moment))


def _instant(value: Any) -> Any:
    """Accepts integer microseconds (server side) and RFC 3339 text (wire); gives an aware datetime."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return moment_of(value)
    if isinstance(value, str):
        return moment_of(from_rfc3339(value))
    return value


def _counter(value: Any) -> Any:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        return int(value)
    if isinstance(value, str) or (isinstance(value, int) and value < 0):
        raise ValueError("is a counter: a whole number of at most 20 digits, without a sign")
    return value


def _printable(text: str) -> str:
    found = _CONTROL.search(text)
    if found is not None:
        raise ValueError(
            f"has a control character (U+{ord(found[0]):04X}) in place {found.start()}; write it without"
        )
    return text


Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    PlainSerializer(_instant_text, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Counter = Annotated[
    int,
    BeforeValidator(_counter),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]{1,20}$"}),
]
Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Words = Annotated[
    str,
    AfterValidator(_printable),
    Field(json_schema_extra={"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}),
]
"""A text of a person's, kept and shown again: in one line, without control characters."""
IdempotencyKey = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
BusinessKey = Annotated[
    str,
    StringConstraints(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x20\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\x9f])?$",
    ),
]
Match = Annotated[str, StringConstraints(max_length=200)] | Annotated[int, Field(ge=-(2**53), le=2**53)]
HandlerName = Annotated[str, StringConstraints(max_length=128, pattern=NAME_PATTERN)]
QueueName = Annotated[str, StringConstraints(max_length=128, pattern=QUEUE_PATTERN)]
Reason = Annotated[Words, StringConstraints(min_length=1, max_length=1000)]
OnBehalfOf = Annotated[Words, StringConstraints(min_length=1, max_length=200)]
EvidenceText = Annotated[Words, StringConstraints(max_length=4000)]
SignalEvidence = Annotated[Words, StringConstraints(max_length=1000)]
Message = Annotated[Words, StringConstraints(max_length=4000)]
ErrorCode = Annotated[str, StringConstraints(pattern=ERROR_CODE_PATTERN)]
Labels = dict[
    Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,62}$")],
    Annotated[Words, StringConstraints(max_length=200)],
]


class Request(BaseModel):
    """A body that a caller sends."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Managed(Request):
    """What somebody is told to do. `on_behalf_of` names the person whom the caller acts for, and needs the
    permission `act:on-behalf`; it is kept beside the caller's own name.
    """

    reason: Reason
    on_behalf_of: OnBehalfOf | None = None


class Answer(BaseModel):
    """A body that the server sends."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=False)


class ErrorDetail(Answer):
    field: str
    reason: str


class ErrorBody(Answer):
    code: str
    message: str
    details: list[ErrorDetail] = []
    retry_after_ms: int | None = None
    """When to come back, where waiting helps; a whole request says it in `Retry-After`, too."""


class Group(Answer):
    """One group of a count. `key` is absent for what has no such value."""

    key: str | None = None
    count: int


class Count(Answer):
    """How many there are. `complete` false: at least so many, the newest were counted."""

    total: int
    complete: bool
    groups: list[Group] = []
    """The largest first."""
    more_groups: bool = False


class Page(Answer, Generic[T]):
    """Newest first; `next_cursor` is absent at the end."""

    items: list[T]
    next_cursor: str | None = None
