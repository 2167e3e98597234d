from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from orbit_sdk.definition.evaluate import MissingFact
from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.errors import FailedPrecondition, NotFound, Unavailable
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done
from orbit_server.storage.database import Database
from orbit_server.weave.definitions.catalog import Catalog, compile_document
from orbit_server.weave.definitions.rows import (
    DEFINITIONS,
    POINTER_READS,
    DefinitionRow,
    PointerRow,
    definition_key,
    pointer_key,
)
from orbit_server.weave.instances.start import StartWorkflow, _StartFacts
from orbit_server.weave.state.running import Weave
from tests.unit.weave.shelves import INSTANCE, NAMESPACE, NOW, SEED, book, compiled, weave

POINTER = pointer_key(NAMESPACE, "test.flow")
VERSION = definition_key(NAMESPACE, "test.flow", 1)


def ready() -> Weave:
    made = weave()
    made.catalog.keep(replace(compiled(), key=VERSION))
    return made


def start(version: int | None = None, **changes: Any) -> StartWorkflow:
    key = CommandKey(NAMESPACE, "workflow.start", "k", "d" * 64)
    return StartWorkflow(
        key, INSTANCE, NAMESPACE, "test.flow", version, {}, "somebody", SEED, ready(), **changes
    )


def published(current: int | None = 1, **changes: Any) -> Book:
    made = book()
    row = DefinitionRow(VERSION, NAMESPACE, "test.flow", 1, "d" * 64, NOW, "somebody", **changes)
    made.put(
        POINTER_READS.name,
        [POINTER],
        {POINTER: PointerRow(POINTER, NAMESPACE, "test.flow", current, 1, 1, 0)},
    )
    made.put(DEFINITIONS.name, [VERSION], {VERSION: row})
    return made


def test_a_start_without_a_version_takes_the_current_one() -> None:
    command = start()
    assert command.needs() == {POINTER_READS.name: (POINTER,)}
    assert command.more(published()) == {DEFINITIONS.name: (VERSION,)}
    answer = command.decide(published())
    assert isinstance(answer, Done)
    assert answer.subject_id == INSTANCE


def test_a_start_of_a_version_looks_at_no_pointer() -> None:
    assert start(1).needs() == {DEFINITIONS.name: (VERSION,)}
    assert start(1).more(book()) == {}


def test_a_restart_keeps_what_it_came_from() -> None:
    made = published()
    start(1, origin={"workflow_id": "w"}).decide(made)
    assert made.get("instance_inputs", INSTANCE).origin == '{"workflow_id":"w"}'


def test_what_is_not_published_cannot_start() -> None:
    made = book()
    made.put(POINTER_READS.name, [POINTER], {})
    assert start().more(made) == {}
    with pytest.raises(NotFound):
        start().decide(made)


def test_without_a_current_version_the_start_must_name_one() -> None:
    assert start().more(published(None)) == {}
    with pytest.raises(FailedPrecondition, match="no current version"):
        start().decide(published(None))


def test_an_absent_version_cannot_start() -> None:
    made = book()
    made.put(DEFINITIONS.name, [VERSION], {})
    with pytest.raises(NotFound, match="version 1"):
        start(1).decide(made)


def test_a_retired_version_takes_no_new_starts() -> None:
    with pytest.raises(FailedPrecondition, match="retired"):
        start(1).decide(published(retired_at=NOW))


def test_before_the_first_step_only_the_instance_is_known() -> None:
    facts = _StartFacts({"workflow_id": INSTANCE})
    assert facts.get(FactKey("instance")) == {"workflow_id": INSTANCE}
    with pytest.raises(MissingFact):
        facts.get(FactKey("step", "work"))


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_document_is_not_run(text: str) -> None:
    with pytest.raises(Unavailable, match="damaged"):
        compile_document("k", text)


def test_a_full_catalog_forgets_what_was_kept_first() -> None:
    catalog = Catalog(cast("Database", None), capacity=2)
    for key in ("a", "b", "a", "c"):
        catalog.keep(replace(compiled(), key=key))
    assert [catalog.peek(key) is not None for key in "abc"] == [True, False, True]


async def test_what_is_in_memory_is_not_read_again() -> None:
    kept = ready()
    assert await kept.catalog.get(VERSION) is kept.compiled(VERSION)
