"""From the dispatcher's offer to the item of a frame."""

from __future__ import annotations

import orjson

from orbit_sdk.protocol.worker import OfferItem
from orbit_sdk.values.instants import to_rfc3339
from orbit_server.pulse.dispatch.sessions import Offer

__all__ = ["item_of"]


def item_of(offer: Offer) -> OfferItem:
    """The parameters are canonical JSON of our own making: they are read without further checks."""
    return OfferItem(
        attempt_id=offer.attempt_id,
        task_id=offer.task_id,
        generation=offer.generation,
        attempt_no=offer.attempt_no,
        kind=offer.kind.value,
        queue=offer.queue,
        handler=offer.handler,
        handler_version=offer.handler_version,
        recovery=offer.recovery.value,
        started=offer.started,
        ready=offer.ready_number if offer.started else None,
        lease_ms=offer.lease_ms,
        limit_ms=offer.limit_ms,
        parameters=orjson.loads(offer.parameters),
        parameters_version=offer.parameters_version,
        effect_key=offer.effect_key,
        asked_generation=offer.asked_generation,
        business_key=offer.business_key,
        workflow_id=offer.workflow_id,
        step_key=offer.step_key,
        round=offer.round or None,
        deadline_at=None if offer.deadline_at is None else to_rfc3339(offer.deadline_at),
        cancel_requested=offer.cancel_requested,
        trace=offer.trace,
        previous_progress=None if offer.previous_progress is None else orjson.loads(offer.previous_progress),
    )
