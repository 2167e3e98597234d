"""Many items in one request: each has a result of its own, in input order; failure of some is data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from orbit_sdk.errors import OrbitError
from orbit_server.api.errors import error_json

T = TypeVar("T")


async def run_batch(
    items: Sequence[T | OrbitError],
    key_of: Callable[[T], str],
    submit: Callable[[list[T]], Awaitable[list[str | OrbitError]]],
) -> dict[str, Any]:
    """`{"items": [{"id"} | {"error"}]}`. `submit` gets well-formed items, all at once.

    Items of one key follow one another, so that the first of them decides what the key means.
    """
    results: list[str | OrbitError] = [item if isinstance(item, OrbitError) else "" for item in items]
    waiting = [place for place, item in enumerate(items) if not isinstance(item, OrbitError)]
    while waiting:
        wave: dict[str, int] = {}
        later = [place for place in waiting if wave.setdefault(key_of(cast(T, items[place])), place) != place]
        answers = await submit([cast(T, items[place]) for place in wave.values()])
        for place, answer in zip(wave.values(), answers, strict=True):
            results[place] = answer
        waiting = later
    return {
        "items": [
            {"error": error_json(result)} if isinstance(result, OrbitError) else {"id": result}
            for result in results
        ]
    }
