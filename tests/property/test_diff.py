"""Differences: none between equals, some between what differs, and never a crash."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hypothesis import given, settings

from orbit_sdk.check.diff import Verdict, compare, markdown_table, worst
from orbit_sdk.definition.models import Definition, definition_digest, load_definition
from orbit_sdk.errors import InvalidArgument
from tests.property.strategies import documents, randoms
from tests.property.test_check_fuzz import Vandal


def as_version(document: dict[str, Any], version: int) -> Definition:
    return load_definition({**copy.deepcopy(document), "version": version})


@settings(max_examples=100)
@given(documents())
def test_a_new_version_of_the_same_is_no_change(document: dict[str, Any]) -> None:
    before, after = as_version(document, 1), as_version(document, 2)
    assert compare(before, after) == ()


@settings(max_examples=300)
@given(documents(), randoms())
def test_what_has_another_digest_has_a_change_that_is_told(document: dict[str, Any], random: Random) -> None:
    before = as_version(document, 1)
    try:
        after = load_definition({**Vandal(random).damage(document), "schema_version": 1, "version": 1})
    except (InvalidArgument, TypeError):
        return
    changes = compare(before, after)
    same = definition_digest(before) == definition_digest(after)
    assert not (same and changes)
    # What nothing uses, and types that are only spelt differently, are no change for anybody.
    spelt = ("types", "handlers", "input", "output", "signals", "id")
    if not same and all(_part(before, name) == _part(after, name) for name in spelt):
        assert changes
    for each in changes:
        assert each.what.endswith(".")
    assert markdown_table([("x", changes)]).count("\n") == len(changes) + 2
    assert worst(changes) in Verdict


def _part(definition: Definition, name: str) -> Any:
    return definition.to_json().get(name)
