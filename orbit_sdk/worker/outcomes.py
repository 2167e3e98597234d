"""What a handler did, as the result that the server gets. Values are checked here, before they are sent."""

from __future__ import annotations

import hashlib
import traceback
from typing import Any

from orbit_sdk.errors import OrbitError
from orbit_sdk.handlers import (
    Cancelled,
    CannotHappenAnyMore,
    CannotTell,
    Final,
    HandBack,
    Handler,
    Happened,
    NeedsPerson,
    NeedsVerification,
    Recovery,
    Retryable,
    TaskError,
)
from orbit_sdk.protocol.worker import (
    DETAIL_BYTES_MAX,
    ERROR_TEXT_MAX,
    RESULT_BYTES_MAX,
    OfferItem,
    Outcome,
    ResultItem,
)
from orbit_sdk.values.canonical import canonical_bytes

__all__ = ["of_answer", "of_bad_parameters", "of_exception", "of_return", "of_verdict"]

INVALID_PARAMETERS = "INVALID_PARAMETERS"
_KEPT_BYTES = 2_000


def _result(offer: OfferItem, outcome: Outcome, **more: Any) -> ResultItem:
    return ResultItem(
        attempt_id=offer.attempt_id,
        generation=offer.generation,
        task_id=offer.task_id,
        outcome=outcome,
        asked_generation=offer.asked_generation,
        **more,
    )


def _text(text: str) -> str:
    """Text that JSON and databases can carry: no lone surrogates, no NUL, bounded."""
    clean = text.encode("utf-8", "replace").decode().replace("\0", "?")
    return clean if len(clean) <= ERROR_TEXT_MAX else clean[: ERROR_TEXT_MAX - 1] + "…"


def of_answer(handler: Handler[..., Any], offer: OfferItem, value: object) -> ResultItem:
    """The function that an attempt of this kind runs has answered."""
    judge = of_verdict if offer.kind == "VERIFY" else of_return
    return judge(handler, offer, value)


def of_return(handler: Handler[..., Any], offer: OfferItem, value: object) -> ResultItem:
    """A RUN attempt returned. An ill-typed or too large value is reported as such: the effect happened."""
    try:
        dumped = handler.dump_result(value)
        data = canonical_bytes(dumped)
    except OrbitError as error:
        return _unusable(offer, str(error), repr(value).encode("utf-8", "replace"))
    if len(data) > RESULT_BYTES_MAX:
        why = f"the result of {handler.key} is {len(data)} bytes long; the limit is {RESULT_BYTES_MAX}"
        return _unusable(offer, why, data)
    return _result(offer, "SUCCEEDED", result=dumped)


def _unusable(offer: OfferItem, why: str, data: bytes) -> ResultItem:
    return _result(
        offer,
        "INVALID_RESULT",
        code="INVALID_RESULT",
        message=_text(why),
        details={"beginning": _text(data[:_KEPT_BYTES].decode(errors="replace"))},
        digest=hashlib.sha256(data).hexdigest(),
        size=len(data),
    )


def of_verdict(handler: Handler[..., Any], offer: OfferItem, verdict: object) -> ResultItem:
    """A VERIFY attempt answered. What is no answer is `CANNOT_TELL`: silence is never evidence."""
    match verdict:
        case Happened(result):
            found = of_return(handler, offer, result)
            if found.outcome == "SUCCEEDED":
                return found.model_copy(update={"outcome": "HAPPENED"})
            return _result(offer, "CANNOT_TELL", message=found.message)
        case CannotHappenAnyMore():
            return _result(offer, "CANNOT_HAPPEN_ANY_MORE", effect="NONE")
        case CannotTell():
            return _result(offer, "CANNOT_TELL")
        case _:
            why = f"the verify function of {handler.key} answered {type(verdict).__name__}, not a verdict"
            return _result(offer, "CANNOT_TELL", message=why)


def of_bad_parameters(offer: OfferItem, error: OrbitError) -> ResultItem:
    """The parameters do not fit the handler: nothing was begun, and trying again cannot help."""
    if offer.kind == "VERIFY":
        return _result(offer, "CANNOT_TELL", message=_text(str(error)))
    return _result(offer, "FINAL", code=INVALID_PARAMETERS, message=_text(str(error)), effect="NONE")


def of_exception(handler: Handler[..., Any], offer: OfferItem, error: BaseException) -> ResultItem:
    """A handler raised; on purpose (`TaskError`, `Cancelled`) or not."""
    message, details = _told(error)
    common: dict[str, Any] = {"message": message, "details": details}
    if isinstance(error, HandBack):
        return _result(offer, "HAND_BACK", effect="NONE", **common)
    if offer.kind == "VERIFY":
        after_ms = error.after_ms if isinstance(error, Retryable) else None
        return _result(offer, "CANNOT_TELL", retry_after_ms=after_ms, **common)
    match error:
        case Retryable():
            declared = error.effect
            if declared is None:
                effect = "NONE" if handler.recovery is Recovery.READ_ONLY else "UNKNOWN"
            else:
                effect = declared.value
            return _result(offer, "RETRYABLE", effect=effect, retry_after_ms=error.after_ms, **common)
        case Final():
            return _result(offer, "FINAL", code=error.code, **common)
        case NeedsVerification():
            return _result(offer, "NEEDS_VERIFICATION", **common)
        case NeedsPerson():
            return _result(offer, "NEEDS_PERSON", **common)
        case Cancelled():
            return _result(offer, "CANCELLED", **common)
        case _:
            return _result(offer, "EXCEPTION", **common)


def _told(error: BaseException) -> tuple[str, Any]:
    """The message and the details of an error, in a form that can be sent."""
    if isinstance(error, TaskError):
        message, details = error.message, error.details
        try:
            if details is None or len(canonical_bytes(details)) <= DETAIL_BYTES_MAX:
                return _text(message), details
        except OrbitError:
            pass
        return _text(message), {"left_out": "the details were no JSON or too large"}
    trace = "".join(traceback.format_exception(error, limit=-8))
    return _text(f"{type(error).__name__}: {error}"), {"traceback": _text(trace[-ERROR_TEXT_MAX:])}
