"""The facts an advance may refer to, read from the book, and what has to be loaded so that they are there.

Nothing here scans: an earlier activation is known by its id, and its value by the reference it keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from orbit_sdk.definition.evaluate import MissingFact
from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.engine.refs import activation_id, parse_ref
from orbit_sdk.engine.reviews import BY_RECOVERY
from orbit_sdk.engine.state import StepState
from orbit_sdk.values.ids import Id
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.pulse.tasks.rows import TASK_RESULTS
from orbit_server.storage.book import Book, MissingRow
from orbit_server.weave.state.rows import CLOSED_STEPS, INPUTS, PAYLOADS, STEPS, InstanceRow, StepRow
from orbit_server.weave.state.signals import BODIES, to_body

_COLD = {"T": TASK_RESULTS.name, "S": BODIES.name, "P": PAYLOADS.name}


class BookFacts:
    """The facts of one instance. Rows that are not loaded raise MissingRow, facts that do not exist
    MissingFact.
    """

    def __init__(self, book: Book, instance: InstanceRow) -> None:
        self._book = book
        self._instance = instance

    def get(self, key: FactKey, /) -> Json:
        if key.source == "input":
            row = self._book.get(INPUTS, self._instance.id)
            if row is None:
                raise MissingFact(key)
            return _loaded(row.input)
        if key.source == "instance":
            return self._instance_value()
        step = latest_closed(self._book, self._instance.id, key.step)
        if step is None:
            raise MissingFact(key)
        if key.of == "failure":
            return self._value(key, step.failure_ref, failure=True)
        if key.of == "meta":
            return self._meta(key, step)
        return self._value(key, step.result_ref, failure=False)

    def _instance_value(self) -> Json:
        row = self._book.get(INPUTS, self._instance.id)
        if row is None:
            raise MissingFact(FactKey("instance"))
        return {
            "workflow_id": self._instance.id,
            "business_key": self._instance.business_key,
            "started_at": to_rfc3339(self._instance.started_at),
            "started_by": row.started_by,
            "origin": _loaded(row.origin) if row.origin else None,
        }

    def _value(self, key: FactKey, ref: str | None, *, failure: bool) -> Json:
        if ref is None:
            raise MissingFact(key)
        kind, row_id = parse_ref(ref)
        if kind == "T":
            result = self._book.get(TASK_RESULTS, row_id)
            text = None if result is None else (result.error if failure else result.result)
        elif kind == "S":
            body = self._book.get(BODIES, row_id)
            text = None if body is None else body.body
        else:
            payload = self._book.get(PAYLOADS, row_id)
            text = None if payload is None else payload.body
        if text is None:
            raise MissingFact(key)
        return _loaded(text)

    def _meta(self, key: FactKey, step: StepRow) -> Json:
        if step.result_ref is None:
            raise MissingFact(key)
        if not step.result_ref.startswith("S:"):
            return None  # a person concluded the wait: there was no signal
        body = self._book.get(BODIES, step.result_ref[2:])
        if body is None:
            raise MissingFact(key)
        return to_body(body).meta


def _loaded(text: str) -> Json:
    value: Json = orjson.loads(text)
    return value


def latest_closed(book: Book, instance_id: Id, step_key: str) -> StepRow | None:
    """The latest activation of a step, whether it was closed before this transaction or in it."""
    number = 1
    while True:
        row_id = activation_id(instance_id, step_key, number)
        row: StepRow | None = book.member(STEPS, instance_id, row_id)
        if row is None:
            row = book.get(CLOSED_STEPS, row_id)
        if row is None or not _was_rerun(row):
            return row
        number += 1


def _was_rerun(row: StepRow) -> bool:
    return row.state is StepState.STOPPED and row.reason == BY_RECOVERY


def fact_needs(book: Book, instance_id: Id, keys: Iterable[FactKey]) -> dict[str, list[Any]]:
    """What to load for these facts, as far as it is known yet: first the activations, then their values."""
    needs: dict[str, list[Any]] = {}
    for key in keys:
        if key.source != "step":
            needs.setdefault(INPUTS.name, []).append(instance_id)
            continue
        try:
            step = latest_closed(book, instance_id, key.step)
        except MissingRow as missing:
            for name, ids in missing.needs.items():
                needs.setdefault(name, []).extend(ids)
            continue
        ref = None if step is None else (step.failure_ref if key.of == "failure" else step.result_ref)
        if ref is not None:
            kind, row_id = parse_ref(ref)
            needs.setdefault(_COLD[kind], []).append(row_id)
    return needs
