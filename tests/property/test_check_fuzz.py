"""Random definitions and random bytes: no crash, bounded work, and what is accepted runs to an end.

500 of each per run; ORBIT_FUZZ=10000 asks for more.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orbit_sdk.check import check_definition, check_document
from orbit_sdk.check.budget import budget_of
from orbit_sdk.check.picture import picture_mermaid, picture_svg
from orbit_sdk.definition.models import load_definition, read_definition
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.json_strict import parse_json
from tests.property.strategies import CHOICES, documents, random_document, randoms
from tests.property.test_engine import Chaos, start

EXAMPLES = int(os.environ.get("ORBIT_FUZZ", "500"))
CALLS = 3_000_000
"""Calls of functions: far less than a second, on any machine that this runs on."""

many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])


def within_bounds(work: Callable[[], Any]) -> Any:
    """What the work gives. Counts calls instead of seconds, which say nothing on a busy machine."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return work()
    finally:
        sys.setprofile(before)
        assert calls < CALLS, f"{calls} calls"


ODD = (
    None,
    True,
    -1,
    0,
    1,
    2**53,
    1.5,
    "",
    "x",
    "REVIEW",
    "input",
    [],
    {},
    {"ref": "input"},
    {"const": None},
    "\x00",
    "é" * 70,
)


class Vandal:
    """Damages a document in one place at a time, mostly in ways that keep it readable."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def damage(self, document: dict[str, Any]) -> dict[str, Any]:
        document = copy.deepcopy(document)
        for _ in range(self.random.randint(1, 3)):
            self.random.choice((self.lead, self.lead, self.swap, self.drop, self.put, self.move))(document)
        return document

    def lead(self, document: dict[str, Any]) -> None:
        """An exit leads elsewhere."""
        nodes = self.nodes(document)
        places = [place for place in self.places(nodes) if self._is_exit(*place)]
        if places:
            owner, name = self.random.choice(places)
            owner[name] = self.random.choice(sorted(nodes))

    def swap(self, document: dict[str, Any]) -> None:
        """Two steps change places."""
        nodes = self.nodes(document)
        if len(nodes) > 1:
            first, second = self.random.sample(sorted(nodes), 2)
            nodes[first], nodes[second] = nodes[second], nodes[first]

    def drop(self, document: dict[str, Any]) -> None:
        owner, name = self.random.choice(self.places(document))
        if isinstance(owner, dict):
            del owner[name]

    def put(self, document: dict[str, Any]) -> None:
        owner, name = self.random.choice(self.places(document))
        owner[name] = copy.deepcopy(self.random.choice(ODD))

    def move(self, document: dict[str, Any]) -> None:
        """A part of the document takes the place of another."""
        places = self.places(document)
        (owner, name), (other, part) = self.random.choice(places), self.random.choice(places)
        owner[name] = copy.deepcopy(other[part])

    @staticmethod
    def nodes(document: dict[str, Any]) -> dict[str, Any]:
        """The steps, unless the damage took them already."""
        nodes = document.get("nodes")
        return nodes if isinstance(nodes, dict) else {}

    def places(self, value: Any) -> list[tuple[Any, Any]]:
        found: list[tuple[Any, Any]] = []
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            found.append((value, name))
            if isinstance(item, dict | list):
                found += self.places(item)
        return found

    @staticmethod
    def _is_exit(owner: Any, name: Any) -> bool:
        return (
            isinstance(owner, dict)
            and name in ("next", "otherwise", "join", "from")
            and isinstance(owner[name], str)
        )


def run(document: dict[str, Any], choice: str, random: Random) -> None:
    """Whatever happens, in whatever order, it can end."""
    chaos = Chaos(start(document, choice, random.choice((1, 3, 64))), random)
    chaos.run(random.randint(0, 40))
    chaos.flow.check()
    chaos.bring_to_an_end()


@many
@given(documents(), st.sampled_from((*CHOICES, "other")), randoms())
def test_a_damaged_definition_is_refused_with_reasons_or_runs_to_an_end(
    document: dict[str, Any], choice: str, random: Random
) -> None:
    damaged = Vandal(random).damage(document)
    found = within_bounds(lambda: check_document(damaged))
    if found.is_sound:
        # Those who play workers and people know the declared types only.
        if all(damaged[name] == document[name] for name in ("handlers", "signals", "types")):
            run(damaged, choice, random)
        return
    for each in found.diagnostics:
        assert each.message
        assert each.help
    if found.definition is not None:
        for shown in (picture_svg, picture_mermaid, budget_of):
            try:
                shown(found.definition)
            except InvalidArgument as error:
                assert error.details  # noqa: PT017  # either answer is right


@many
@given(documents(20, 3), st.sampled_from(CHOICES), randoms())
def test_a_definition_that_check_accepts_runs_to_an_end(
    document: dict[str, Any], choice: str, random: Random
) -> None:
    """The signals of two waits may be mixed up, which the check refuses; everything else must run."""
    if not any(each.is_error for each in check_definition(load_definition(document))):
        run(document, choice, random)


BYTES = st.one_of(
    st.binary(max_size=400),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=20,
    ).map(lambda value: json.dumps(value).encode()),
)


@many
@given(BYTES)
def test_random_bytes_are_refused_and_never_crash(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        within_bounds(lambda: read_definition(data))


@many
@given(documents(6, 2), randoms())
def test_a_definition_with_damaged_bytes_is_read_or_refused(document: dict[str, Any], random: Random) -> None:
    data = bytearray(json.dumps(document).encode())
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data))
        kind = random.randrange(3)
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            del data[at : at + random.randint(1, 40)]
        else:
            data[at:at] = data[random.randrange(len(data)) :][: random.randint(1, 40)]
        if not data:
            return
    try:
        parsed = parse_json(bytes(data), max_bytes=2**20)
    except InvalidArgument as error:
        assert error.details  # noqa: PT017  # either answer is right
    else:
        within_bounds(lambda: check_document(parsed))


def test_the_largest_definitions_take_bounded_work() -> None:
    for seed in range(20):
        document = random_document(Random(seed), 900, 8)
        within_bounds(lambda document=document: check_definition(load_definition(document)))
