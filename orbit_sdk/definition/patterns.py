"""Patterns of text types: the syntax of linear-time engines, so that no input can make one slow.

Look-around and back-references do not exist there and are refused. A pattern searches anywhere in
the text, as JSON Schema says; `^` and `$` mean the very ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError, SchemaError, SchemaValidator, core_schema

__all__ = ["MAX_PATTERN", "Pattern", "compile_pattern"]

MAX_PATTERN = 512
MAX_PARTS = 1_000
"""Parts of a pattern whose counts are written out: its time grows with them, for each character of a text."""

_TOKEN = re.compile(r"\\[pPx]\{[^}]*\}|\\.|\{(\d+)(?:,(\d*))?\}|.", re.DOTALL)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Callable[[Any], bool]:
    """A function that says whether a text holds a match; ValueError when the syntax is not known, or when
    counted repetitions would make it slow.
    """
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    try:
        matches = SchemaValidator(schema).isinstance_python
    except SchemaError:
        raise ValueError("is not a linear-time pattern (no look-around, no back-references)") from None
    if _written_out(pattern) > MAX_PARTS:
        raise ValueError(f"has more than {MAX_PARTS} parts when its counts are written out")
    return matches


def _written_out(pattern: str) -> int:
    """The size of a pattern whose counts are written out, in parts; classes are not looked into."""
    sizes, last, in_class = [0], 0, 0
    for token in _TOKEN.finditer(pattern):
        text, least, most = token.group(), token.group(1), token.group(2)
        if in_class or text == "[":
            in_class += (text == "[") - (text == "]")
            last = 0 if in_class else 1
            sizes[-1] += last
        elif text == "(":
            sizes.append(0)
        elif text == ")" and len(sizes) > 1:
            last = sizes.pop()
            sizes[-1] += last
        elif least is not None:
            times = max(int(least), int(most or 0), 1)
            sizes[-1] += last * (times - 1)
            last *= times
        elif text not in "?*+|^$":
            last = 1
            sizes[-1] += last
    return sum(sizes)


def _known(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise PydanticCustomError("pattern", "{reason}", {"reason": str(error)}) from None
    return pattern


Pattern: TypeAlias = Annotated[
    str, Field(max_length=MAX_PATTERN, json_schema_extra={"format": "regex"}), AfterValidator(_known)
]
