"""Patterns of text types: the syntax of linear-time engines, so that no input can make one slow.

Look-around and back-references do not exist there and are refused. A pattern searches anywhere in
the text, as JSON Schema says; `^` and `$` mean the very ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError, SchemaError, SchemaValidator, core_schema

__all__ = ["MAX_PATTERN", "Pattern", "compile_pattern"]

MAX_PATTERN = 512


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Callable[[Any], bool]:
    """A function that says whether a text holds a match; ValueError when the syntax is not known."""
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError:
        raise ValueError("is not a linear-time pattern (no look-around, no back-references)") from None


def _known(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise PydanticCustomError("pattern", "{reason}", {"reason": str(error)}) from None
    return pattern


Pattern: TypeAlias = Annotated[
    str, Field(max_length=MAX_PATTERN, json_schema_extra={"format": "regex"}), AfterValidator(_known)
]
