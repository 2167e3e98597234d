"""Messages to text and back. Whatever arrives, `decode` answers a message or a `Fault`; it never raises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from orbit_sdk.errors import Code, OrbitError, PayloadTooLarge
from orbit_sdk.protocol.worker import (
    FRAME_BYTES_MAX,
    ITEMS_MAX,
    SERVER_MESSAGES,
    WORKER_MESSAGES,
    AnyMessage,
    Error,
    Message,
)
from orbit_sdk.values.json_strict import parse_json
from orbit_sdk.values.limits import DEFAULT_LIMITS

__all__ = ["Fault", "Sender", "decode", "encode", "in_parts", "pack"]

T = TypeVar("T")
Sender = Literal["worker", "server"]

# A payload may be as deep as everywhere else; the frame around it adds message, list and item.
_DEPTH = DEFAULT_LIMITS.json_depth + 3
_REASONS_MAX = 5


@dataclass(frozen=True, slots=True)
class Fault:
    """A frame that breaks the protocol, as a value. A fatal one ends the connection after `error` is told."""

    code: Code
    message: str
    about: str | None = None
    fatal: bool = True

    def error(self) -> Error:
        """The frame that tells the other end."""
        return Error(code=self.code.value, message=self.message[:2000], about=self.about, fatal=self.fatal)


def _by_type(models: tuple[type[Message], ...]) -> dict[str, TypeAdapter[Any]]:
    return {model.model_fields["type"].default: TypeAdapter(model) for model in models}


_READERS: dict[Sender, dict[str, TypeAdapter[Any]]] = {
    "worker": _by_type(WORKER_MESSAGES),
    "server": _by_type(SERVER_MESSAGES),
}


def decode(data: object, sender: Sender) -> AnyMessage | Fault:
    """The message of one frame that `sender` wrote. Binary frames are refused: the protocol is JSON text."""
    if not isinstance(data, str):
        return Fault(Code.INVALID_ARGUMENT, "frames are JSON text, not binary")
    try:
        value = parse_json(data, max_bytes=FRAME_BYTES_MAX, max_depth=_DEPTH)
    except OrbitError as error:
        return Fault(error.code, error.message)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return Fault(Code.INVALID_ARGUMENT, "a frame is an object with a text field `type`")
    kind = cast(str, value["type"])
    reader = _READERS[sender].get(kind)
    if reader is None:
        name = kind[:64]
        return Fault(Code.INVALID_ARGUMENT, f"a {sender} does not send {name!r}", about=name, fatal=False)
    try:
        return cast(AnyMessage, reader.validate_python(value))
    except ValidationError as error:
        return Fault(Code.INVALID_ARGUMENT, _explain(error), about=kind)


def _explain(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(map(str, problem['loc'])) or '$'}: {problem['msg']}" for problem in problems]
    more = len(lines) - _REASONS_MAX
    return "; ".join(lines[:_REASONS_MAX]) + (f"; and {more} more" if more > 0 else "")


def in_parts(items: Sequence[T]) -> Iterator[list[T]]:
    """The items in runs of as many as one message may hold."""
    for first in range(0, len(items), ITEMS_MAX):
        yield list(items[first : first + ITEMS_MAX])


def encode(message: Message) -> str:
    """One frame, whatever its size; senders of lists use `pack`."""
    return message.__pydantic_serializer__.to_json(message).decode()


def pack(message: Message) -> Iterator[str]:
    """The message as frames of at most FRAME_BYTES_MAX bytes, its items shared out in order.

    PayloadTooLarge if a single item alone does not fit: its maker checks payloads before they come here.
    """
    data = message.__pydantic_serializer__.to_json(message)
    if len(data) <= FRAME_BYTES_MAX:
        yield data.decode()
        return
    items = getattr(message, "items", ())
    if len(items) < 2:
        kind = getattr(message, "type", "message")
        raise PayloadTooLarge(f"one {kind} of {len(data)} bytes does not fit a frame of {FRAME_BYTES_MAX}")
    half = len(items) // 2
    yield from pack(message.model_copy(update={"items": items[:half]}))
    yield from pack(message.model_copy(update={"items": items[half:]}))
