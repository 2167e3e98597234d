"""How what a worker says becomes a `Report`: bounded, canonical, with a digest. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import DEFAULT_LIMITS
from orbit_server.pulse.tasks.decide.finish import Report
from orbit_server.pulse.tasks.lifecycle import Said

_KEPT_CHARS = 4_096
"""How much of an unusable body is kept as evidence."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a worker said, as values. `result` counts where there is one, `code` and the rest where there is
    not.
    """

    said: Said
    result: Json = None
    code: str | None = None
    message: str = ""
    details: Json = None
    effect_unknown: bool = True
    retry_after_ms: int | None = None
    asked_generation: int | None = None


_WITH_RESULT = frozenset({Said.SUCCEEDED, Said.HAPPENED})


def report_of(told: Told, *, result_bytes: int = DEFAULT_LIMITS.result_bytes) -> Report:
    """The report to decide on. A result above the limit is INVALID_RESULT: its effect happened all the same.

    Raises:
        InvalidArgument: the values are not JSON that can be kept exactly.
    """
    if told.said in _WITH_RESULT:
        text = canonical_json(told.result)
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        if len(data) > result_bytes:
            return Report(
                Said.INVALID_RESULT, result=_kept(text, len(data)), digest=digest, code="RESULT_TOO_LARGE"
            )
        return Report(told.said, result=text, digest=digest, asked_generation=told.asked_generation)
    result = None
    if told.said is Said.INVALID_RESULT and told.result is not None:
        text = canonical_json(told.result)
        result = _kept(text, len(text.encode()))
    error: dict[str, Json] = {"code": told.code or told.said.value, "message": told.message}
    if told.details is not None:
        error["details"] = told.details
    error_text = canonical_json(error)
    return Report(
        told.said,
        result=result,
        error=error_text,
        digest=hashlib.sha256(f"{told.said}:{result or ''}:{error_text}".encode()).hexdigest(),
        code=told.code,
        effect_unknown=told.effect_unknown,
        retry_after_ms=told.retry_after_ms,
        asked_generation=told.asked_generation,
    )


def _kept(text: str, size: int) -> str:
    """The value itself where it is short, else its beginning as a text."""
    if len(text) <= _KEPT_CHARS:
        return text
    return canonical_json({"bytes": size, "truncated": text[:_KEPT_CHARS]})
