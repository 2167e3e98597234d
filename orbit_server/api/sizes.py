"""Values that are too large are refused before anything is decided: by field, limit, and way out."""

from __future__ import annotations

from orbit_sdk.errors import Detail, InvalidArgument, PayloadTooLarge
from orbit_sdk.protocol.tasks import ResolveTask
from orbit_sdk.protocol.workflows import DecideReview
from orbit_sdk.values.canonical import canonical_bytes
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import Limits

_STORE_IT = "keep it where large things are kept, and send where it is with its digest"


def require_signal(limits: Limits, body: Json, evidence: str | None) -> None:
    """Raises PayloadTooLarge."""
    _require("body", len(canonical_bytes(body)), "signal_body_bytes", limits.signal_body_bytes)
    require_evidence(limits, evidence)


def require_evidence(limits: Limits, evidence: str | None) -> None:
    """Raises PayloadTooLarge."""
    if evidence is not None:
        _require("evidence", len(evidence.encode()), "evidence_bytes", limits.evidence_bytes)


def require_one_result(body: DecideReview | ResolveTask) -> None:
    """A decision says its result, or adopts one. Raises InvalidArgument."""
    if body.adopt is not None and "result" in body.model_fields_set:
        raise InvalidArgument.at("adopt", "and result exclude each other")


def require_parameters(limits: Limits, canonical: str) -> None:
    """Raises PayloadTooLarge."""
    _require("parameters", len(canonical.encode()), "input_bytes", limits.input_bytes)


def require_result(limits: Limits, canonical: str | None) -> None:
    """Raises PayloadTooLarge."""
    if canonical is not None:
        _require("result", len(canonical.encode()), "result_bytes", limits.result_bytes)


def _require(field: str, size: int, limit: str, most: int) -> None:
    if size > most:
        reason = f"has {size} bytes; the limit {limit} is {most}"
        raise PayloadTooLarge(f"{field} {reason}", [Detail(field, f"{reason}: {_STORE_IT}")])
