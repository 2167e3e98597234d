"""Checks grow with the definition, not with the number of ways through it."""

from __future__ import annotations

import sys
from types import FrameType

from orbit_sdk.check import check_definition
from orbit_sdk.definition.models import Definition
from tests.unit.check.documents import (
    TEXT,
    Document,
    choose,
    definition,
    end,
    express,
    findings,
    handler,
    join,
    merge,
    parallel,
    record,
    ref,
    task,
    told,
    wait,
)

MAKE = {"make@1": handler(record(id=TEXT)), "use@1": handler(record(id=TEXT), parameters={"id": TEXT})}


def forks(count: int) -> Definition:
    """So many branches one after the other, each with two sides that meet in a MERGE which reads both."""
    nodes: Document = {}
    for number in range(count):
        left, right, met = f"l{number}", f"r{number}", f"m{number}"
        nodes[f"b{number}"] = express(left, right)
        nodes[left] = task(met, "make@1")
        nodes[right] = task(met, "make@1")
        nodes[met] = merge(
            f"u{number}", TEXT, (left, "next", ref(f"{left}.id")), (right, "next", ref(f"{right}.id"))
        )
        following = f"b{number + 1}" if number + 1 < count else "e"
        nodes[f"u{number}"] = task(following, "use@1", input={"id": ref("m0")})
    nodes["e"] = end(ref(f"m{count - 1}"))
    return definition(nodes, "b0", handlers=MAKE)


def calls(checked: Definition) -> int:
    """How many Python functions a check calls."""
    count = 0

    def seen(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        found = check_definition(checked)
    finally:
        sys.setprofile(before)
    assert found == ()
    return count


def test_twice_the_branches_are_about_twice_the_work() -> None:
    calls(forks(3))
    few, many = calls(forks(20)), calls(forks(40))
    assert many < 2.5 * few


def test_twice_the_conditions_of_one_branch_are_about_twice_the_work() -> None:
    def asked(count: int) -> Definition:
        cases = [
            {"when": {"eq": [ref("input.order"), {"const": f"v{number}"}]}, "next": "e"}
            for number in range(count)
        ]
        return definition({"b": {"kind": "BRANCH", "cases": cases, "otherwise": "e"}, "e": end()}, "b")

    calls(asked(3))
    few, many = calls(asked(200)), calls(asked(400))
    assert many < 2.5 * few


def test_unions_of_unions_are_compared_without_trying_every_way_down() -> None:
    types: Document = {}
    for side in ("in", "out"):
        types |= {f"{side}T0": {"type": "integer"}, f"{side}U0": TEXT}
        for level in range(1, 31):
            either = {"anyOf": [{"$ref": f"#/types/{side}{name}{level - 1}"} for name in "TU"]}
            types |= {f"{side}T{level}": either, f"{side}U{level}": either}
    ends: Document = {"input": {"$ref": "#/types/inT30"}, "output": {"$ref": "#/types/outT30"}}
    assert told({"e": end(ref("input"))}, "e", types=types, **ends) == []


def test_a_long_chain_of_types_is_read_and_compared() -> None:
    types: Document = {"T0": TEXT}
    for level in range(1, 1_001):
        types[f"T{level}"] = record(a={"$ref": f"#/types/T{level - 1}"})
    ends: Document = {"input": {"$ref": "#/types/T1000"}, "output": {"$ref": "#/types/T999"}}
    assert told({"e": end(ref("input.a"))}, "e", types=types, **ends) == []


def test_an_unsound_reading_behind_many_branches_is_found() -> None:
    nodes: Document = {f"b{number}": express(f"l{number}", f"r{number}") for number in range(60)}
    for number in range(60):
        following = f"b{number + 1}" if number < 59 else "u"
        nodes[f"l{number}"] = task(following, "make@1")
        nodes[f"r{number}"] = task(following, "make@1")
    nodes |= {"u": task("e", "use@1", input={"id": ref("l0.id")}), "e": end()}
    (found,) = findings(nodes, "b0", handlers=MAKE)
    assert (found.code, found.node) == ("FACT_UNCERTAIN", "u")
    assert len(found.related) == 120


def nested(depth: int, width: int, following: str, prefix: str = "") -> Document:
    """A PARALLEL of `width` arms; the first holds the next level."""
    key, meeting = f"p{prefix}{depth}", f"j{prefix}{depth}"
    arms = [f"a{prefix}{depth}_{number}" for number in range(width - 1)]
    inner = f"p{prefix}{depth - 1}" if depth > 1 else f"leaf{prefix}"
    nodes: Document = {key: parallel(meeting, inner, *arms), meeting: join(following)}
    nodes |= {arm: task(meeting, "make@1") for arm in arms}
    if depth > 1:
        return {**nodes, **nested(depth - 1, width, meeting, prefix)}
    return {**nodes, f"leaf{prefix}": task(meeting, "make@1")}


def test_wide_arms_nested_as_deep_as_allowed_are_sound() -> None:
    nodes = {**nested(8, 29, "e"), "e": end({"array": [ref("leaf.id"), ref("a8_0.id"), ref("a1_0.id")]})}
    assert len(nodes) <= 256
    assert told(nodes, "p8", handlers=MAKE) == []


def test_wide_arms_at_their_limit_are_sound() -> None:
    nodes = {**nested(7, 32, "e"), "e": end()}
    assert told(nodes, "p7", handlers=MAKE) == []


def test_many_ways_of_one_branch_may_meet_in_one_merge() -> None:
    cases = [(f"v{number}", "m") for number in range(500)]
    inputs = [("b", f"cases.{number}", ref("input.order")) for number in range(500)]
    nodes = {
        "b": choose(ref("input.customer"), *cases, otherwise="e"),
        "m": merge("e", TEXT, *inputs),
        "e": end(),
    }
    assert told(nodes) == []


def test_many_waits_for_one_signal_are_told_once_each() -> None:
    nodes = {f"w{number}": wait(f"w{number + 1}" if number < 199 else "e") for number in range(200)}
    found = told({**nodes, "e": end()}, "w0")
    assert len(found) == 199
