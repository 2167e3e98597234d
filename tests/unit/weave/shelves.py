"""Books and rows of workflows in memory: what a transaction holds, without a database."""

from __future__ import annotations

from typing import Any, cast

from orbit_sdk.engine.refs import activation_id
from orbit_sdk.engine.state import Instance, InstanceState, Step, StepState
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import IdSeed, derive_id
from orbit_server.bootstrap import KINDS
from orbit_server.storage.book import Book
from orbit_server.storage.database import Database
from orbit_server.storage.events import EVENTS
from orbit_server.weave.definitions.catalog import Catalog, Compiled, compile_document
from orbit_server.weave.state.rows import (
    INSTANCES,
    STEPS,
    InstanceInput,
    InstanceRow,
    StepRow,
    instance_row,
    step_row,
)
from orbit_server.weave.state.running import Weave
from orbit_server.weave.state.signals import SignalBodyRow
from tests.documents import document, end, task, timer

NOW = 1_800_000_000_000_000
NAMESPACE = derive_id("namespace", "test")
INSTANCE = derive_id("instance", "test")
KEY = derive_id("definition", "test")
SEED = IdSeed(NOW, "seed")
FLOW = document({"sleep": timer("work"), "work": task("done", "safe"), "done": end({"ref": "work"})})


def book(now: int = NOW) -> Book:
    """A transaction that has loaded nothing yet."""
    return Book({kind.name: kind for kind in (*KINDS, EVENTS)}, now)


def compiled(flow: dict[str, Any] | None = None) -> Compiled:
    """A definition as the catalog keeps it."""
    return compile_document(KEY, canonical_json(FLOW if flow is None else flow))


def weave(flow: dict[str, Any] | None = None, *, empty: bool = False) -> Weave:
    """Definitions in memory: nothing here asks the database."""
    catalog = Catalog(cast("Database", None))
    if not empty:
        catalog.keep(compiled(flow))
    return Weave(catalog)


def head(**changes: Any) -> InstanceRow:
    """A running instance."""
    values: dict[str, Any] = {"state": InstanceState.RUNNING, "started_at": NOW, "last": NOW} | changes
    found = Instance(
        id=INSTANCE,
        namespace_id=NAMESPACE,
        definition_id="test.flow",
        definition_version=1,
        effect_root=INSTANCE,
        **values,
    )
    return instance_row(found, definition_key=KEY, parameters_version=1)


def step(key: str, number: int = 1, **changes: Any) -> StepRow:
    """An activation; it waits for time unless told otherwise."""
    values: dict[str, Any] = {"state": StepState.WAITING_TIME, "live": True, "opened_at": NOW} | changes
    row_id = activation_id(INSTANCE, key, number)
    return step_row(Step(row_id, INSTANCE, key, number, **values), NAMESPACE, NOW)


def holding(row: InstanceRow | None, *steps: StepRow) -> Book:
    """A transaction that has loaded the instance (None: there is none) and its live steps."""
    made = book()
    made.put(INSTANCES.name, [INSTANCE], {} if row is None else {INSTANCE: row})
    made.put(STEPS.name, [INSTANCE], {INSTANCE: steps})
    return made


def started_with(text: str = "{}", origin: str | None = None) -> InstanceInput:
    """What the instance was started with."""
    return InstanceInput(INSTANCE, text, "d" * 64, None, "somebody", origin, None, None)


def body(row_id: str, text: str = '{"ok":true}') -> SignalBodyRow:
    """What a signal said."""
    return SignalBodyRow(row_id, text, "d" * 64, "somebody", None, NOW, 1, None)
