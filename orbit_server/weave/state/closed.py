"""Closed steps that a decision looks at: waits that a signal came too late for, work that stays done."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.engine.shape import Plan, Poll
from orbit_sdk.engine.state import Step
from orbit_sdk.values.ids import Id
from orbit_server.storage.book import Book, MissingRow
from orbit_server.weave.state.facts import latest_closed
from orbit_server.weave.state.rows import HISTORY, STEPS, to_step


def closed_needs(book: Book, instance_id: Id, step_keys: Iterable[str]) -> dict[str, list[Id]]:
    """What to load for the latest activations of these steps, as far as their ids are known yet."""
    needs: dict[str, list[Id]] = {}
    for step_key in step_keys:
        try:
            latest_closed(book, instance_id, step_key)
        except MissingRow as missing:
            for name, ids in missing.needs.items():
                needs.setdefault(name, []).extend(ids)
    return needs


def waits_that_are_over(book: Book, instance_id: Id, plan: Plan, step_keys: Iterable[str]) -> dict[str, Step]:
    """The latest closed activations of these waits; nothing while a later one may still take the signal.

    A second stage that keeps early signals, or a POLL with a receipt, may well ask for the same signal as a
    stage whose time is over: what comes in between is early, not late.
    """
    found: dict[str, Step] = {}
    for step_key in step_keys:
        row = latest_closed(book, instance_id, step_key)
        node = plan.nodes[step_key]
        if row is None and (node.keep_early or isinstance(node.spec, Poll)):
            return {}
        if row is not None and not row.live:
            found[step_key] = to_step(row)
    return found


def whole_history(book: Book, instance_id: Id) -> dict[str, Step]:
    """The latest activation of every step that is closed, in this transaction or before. Needs HISTORY."""
    rows = [*book.members(HISTORY, instance_id)]
    rows += [row for row in book.members(STEPS, instance_id) if not row.live]
    latest: dict[str, Step] = {}
    for row in rows:
        known = latest.get(row.step_key)
        if known is None or row.activation_no > known.activation_no:
            latest[row.step_key] = to_step(row)
    return latest
