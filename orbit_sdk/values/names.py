"""The grammar of everything that is named: ASCII only, lengths fixed, used by every edge alike."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "ERROR_CODE_PATTERN",
    "HANDLER_KEY_PATTERN",
    "NAME_PATTERN",
    "QUEUE_PATTERN",
    "RESERVED_KEYS",
    "STEP_KEY_PATTERN",
    "handler_key",
    "is_error_code",
    "is_handler_key",
    "is_name",
    "is_queue_name",
    "is_step_key",
    "split_handler_key",
]

_WORD: Final = "[a-z][a-z0-9_]{0,62}"
STEP_KEY_PATTERN: Final = f"^{_WORD}$"
NAME_PATTERN: Final = rf"^{_WORD}(\.{_WORD})*$"
HANDLER_KEY_PATTERN: Final = rf"^{_WORD}(\.{_WORD})*@[1-9][0-9]{{0,8}}$"
QUEUE_PATTERN: Final = "^[a-z][a-z0-9_.-]{0,127}$"
ERROR_CODE_PATTERN: Final = "^[A-Z][A-Z0-9_]{0,62}$"

RESERVED_KEYS: Final = frozenset({"input", "instance"})
"""Words that a reference understands itself, so no step may be called so."""

_NAME_MAX = 128
_STEP_KEY = re.compile(STEP_KEY_PATTERN[1:-1])
_NAME = re.compile(NAME_PATTERN[1:-1])
_HANDLER_KEY = re.compile(HANDLER_KEY_PATTERN[1:-1])
_QUEUE = re.compile(QUEUE_PATTERN[1:-1])
_ERROR_CODE = re.compile(ERROR_CODE_PATTERN[1:-1])


def is_step_key(text: str) -> bool:
    """Step keys and arms: one word, at most 63 characters, not a reserved word."""
    return _STEP_KEY.fullmatch(text) is not None and text not in RESERVED_KEYS


def is_name(text: str) -> bool:
    """Ids of workflows, handlers and signals: words joined by dots, at most 128 characters."""
    return len(text) <= _NAME_MAX and _NAME.fullmatch(text) is not None


def is_queue_name(text: str) -> bool:
    """Queues: a lower-case letter, then letters, digits, `_`, `.` and `-`, at most 128 characters."""
    return _QUEUE.fullmatch(text) is not None


def is_error_code(text: str) -> bool:
    """Error codes: capitals, digits and `_`, at most 63 characters."""
    return _ERROR_CODE.fullmatch(text) is not None


def is_handler_key(text: str) -> bool:
    """`job.submit@1`: a handler's name and its version."""
    return _HANDLER_KEY.fullmatch(text) is not None and text.index("@") <= _NAME_MAX


def handler_key(name: str, version: int) -> str:
    """The key of a handler's version."""
    return f"{name}@{version}"


def split_handler_key(key: str) -> tuple[str, int]:
    """("job.submit", 1) of `job.submit@1`; ValueError when it is not a handler key."""
    if not is_handler_key(key):
        raise ValueError(f"{key!r} is not a handler key such as job.submit@1")
    name, _, version = key.partition("@")
    return name, int(version)
