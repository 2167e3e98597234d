"""Query parameters, read strictly: unknown, repeated and malformed ones are refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from orbit_sdk.errors import Detail, InvalidArgument
from orbit_sdk.values.defaults import DEFAULTS
from orbit_sdk.values.ids import is_id
from orbit_sdk.values.instants import from_rfc3339
from orbit_sdk.values.names import NAME_PATTERN, is_handler_key, is_name, is_queue_name

CURSOR_BYTES: Final = 1_024
LIMIT_MAX: Final = 100
_TEXT_MAX: Final = 200
_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_LABELS_CHARS = 1_000
_LABEL = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_PARTS = re.compile(r"((?:[^,\\]|\\.)*),", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One query parameter. `parse` gives its value or raises ValueError with the reason."""

    name: str
    description: str
    schema: Mapping[str, Any]
    parse: Callable[[str], Any]


def parse_query(raw: bytes, allowed: Iterable[Parameter]) -> dict[str, Any]:
    """The values of a query string by name; what was left out is absent.

    Raises InvalidArgument naming every parameter that is unknown, repeated or malformed.
    """
    known = {parameter.name: parameter for parameter in allowed}
    values: dict[str, Any] = {}
    problems: list[Detail] = []
    for part in raw.split(b"&") if raw else ():
        name, value, reason = _decoded(part)
        if reason is None and name not in known:
            reason = "is not a parameter of this route"
        if reason is None and name in values:
            reason = "is given twice"
        if reason is None:
            try:
                values[name] = known[name].parse(value)
            except ValueError as error:
                values[name] = None
                reason = str(error)
        if reason is not None:
            problems.append(Detail(name, reason))
    if problems:
        raise InvalidArgument(f"{problems[0].field} {problems[0].reason}", problems)
    return values


def _decoded(part: bytes) -> tuple[str, str, str | None]:
    name, equals, value = part.partition(b"=")
    if _BAD_PERCENT.search(part):
        return name.decode("ascii", "replace")[:100], "", "is not percent-encoded UTF-8"
    try:
        texts = [unquote_to_bytes(piece.replace(b"+", b" ")).decode() for piece in (name, value)]
    except ValueError:
        return name.decode("ascii", "replace")[:100], "", "is not percent-encoded UTF-8"
    if not equals:
        return texts[0][:100], "", "has no value"
    return texts[0][:100], texts[1], None


# --- what a value may be -----------------------------------------------------------------------------------


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) <= 19 and low <= int(text) <= high):
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return parse


def _checked(good: Callable[[str], bool], what: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not good(text):
            raise ValueError(f"must be {what}")
        return text

    return parse


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _some_text(text: str) -> bool:
    return 1 <= len(text) <= _TEXT_MAX and _CONTROL.search(text) is None


def whole(name: str, low: int, high: int, description: str) -> Parameter:
    """A whole number within bounds."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Parameter(name, description, schema, _whole(low, high))


def counter(name: str, description: str) -> Parameter:
    """A revision, as a decimal text."""
    schema = {"type": "string", "pattern": "^[0-9]{1,19}$"}
    return Parameter(name, description, schema, _whole(0, 2**63 - 1))


def flag(name: str, description: str) -> Parameter:
    """`true` or `false`."""
    return Parameter(name, description, {"type": "boolean"}, _flag)


def one_of(name: str, values: Iterable[str], description: str) -> Parameter:
    """One word of a closed set."""
    words = tuple(values)
    return Parameter(
        name,
        description,
        {"type": "string", "enum": list(words)},
        _checked(words.__contains__, f"one of {', '.join(words)}"),
    )


def name_filter(name: str, description: str) -> Parameter:
    """A name such as a definition's or a handler's."""
    return Parameter(
        name, description, {"type": "string", "pattern": NAME_PATTERN}, _checked(is_name, "a name")
    )


def queue_filter(name: str, description: str) -> Parameter:
    """A queue's name."""
    return Parameter(name, description, {"type": "string"}, _checked(is_queue_name, "a queue's name"))


def handler_filter(name: str, description: str) -> Parameter:
    """A handler, with or without its version."""
    good = _checked(
        lambda text: is_name(text) or is_handler_key(text), "a handler such as job.submit or job.submit@1"
    )
    return Parameter(name, description, {"type": "string"}, good)


def text_filter(name: str, description: str) -> Parameter:
    """A short text without control characters."""
    schema = {"type": "string", "minLength": 1, "maxLength": _TEXT_MAX}
    return Parameter(
        name, description, schema, _checked(_some_text, f"1 to {_TEXT_MAX} printable characters")
    )


def instant(name: str, description: str) -> Parameter:
    """An instant as RFC 3339; its value is microseconds."""
    return Parameter(name, description, {"type": "string", "format": "date-time"}, from_rfc3339)


def labels_filter(description: str) -> Parameter:
    """`name=value`, several apart by commas; a comma or backslash in a value is written after a backslash."""
    schema = {"type": "string", "maxLength": _LABELS_CHARS}
    return Parameter("labels", description, schema, _labels)


def _labels(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if not 1 <= len(text) <= _LABELS_CHARS:
        raise ValueError(f"must have 1 to {_LABELS_CHARS} characters")
    for part in _PARTS.findall(text + ","):
        name, equals, value = part.partition("=")
        if not equals or _LABEL.fullmatch(name) is None or name in found:
            raise ValueError("must be name=value, several apart by commas, each name once")
        found[name] = _ESCAPED.sub(r"\1", value)
    return found


def group_filter(names: Iterable[str]) -> Parameter:
    """What a count groups by: one of the names, or the value of a label."""
    words = tuple(names)

    def good(text: str) -> bool:
        kind, _, name = text.partition(":")
        return text in words or (kind == "label" and _LABEL.fullmatch(name) is not None)

    plain = ", ".join((*words, "label:<name>"))
    return Parameter(
        "group_by",
        f"Count each group by itself: {plain}.",
        {"type": "string"},
        _checked(good, f"one of {plain}"),
    )


def id_filter(name: str, description: str) -> Parameter:
    """The id of something."""
    schema = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
    return Parameter(name, description, schema, _checked(is_id, "32 lower-case hex digits"))


def _cursor(text: str) -> str:
    if not 1 <= len(text.encode()) <= CURSOR_BYTES:
        raise ValueError(f"is longer than {CURSOR_BYTES} bytes" if text else "is empty")
    return text


LIMIT: Final = Parameter(
    "limit",
    f"How many items a page has at most, 1 to {LIMIT_MAX}.",
    {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": DEFAULTS.page_size},
    _whole(1, LIMIT_MAX),
)
CURSOR: Final = Parameter(
    "cursor",
    "The `next_cursor` of the page before, unchanged.",
    {"type": "string", "minLength": 1, "maxLength": CURSOR_BYTES},
    _cursor,
)
PAGING: Final = (LIMIT, CURSOR)
