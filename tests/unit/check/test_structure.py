"""Parallel arms: what belongs to an arm, and what crosses its border."""

from __future__ import annotations

from orbit_sdk.values.limits import Limits
from tests.unit.check.documents import (
    const,
    end,
    express,
    fail,
    findings,
    join,
    merge,
    parallel,
    task,
    told,
    wait,
)


def test_two_arms_that_meet_at_their_join_are_sound() -> None:
    assert (
        told({"p": parallel("j", "a", "b"), "a": task("j"), "b": task("j"), "j": join("e"), "e": end()}) == []
    )


def test_an_arm_may_branch_nest_and_fail() -> None:
    nodes = {
        "p": parallel("j", "q", "b"),
        "q": parallel("k", "c", "d"),
        "c": express("c1", "k"),
        "c1": task("k"),
        "d": express("k", "broken"),
        "broken": fail(),
        "k": join("after"),
        "after": task("j"),
        "b": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == []


def test_an_arm_may_end_in_an_inner_join() -> None:
    nodes = {
        "p": parallel("j", "q", "b"),
        "q": parallel("k", "c", "d"),
        "c": task("k"),
        "d": task("k"),
        "k": join("j"),
        "b": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == []


def test_an_arm_without_a_step_is_refused() -> None:
    nodes = {"p": parallel("j", "a", skip="j"), "a": task("j"), "j": join("e"), "e": end()}
    assert told(nodes) == [("ARM_EMPTY", "p")]


def test_one_step_cannot_be_two_arms() -> None:
    nodes = {"p": parallel("j", "a", again="a"), "a": task("j"), "j": join("e"), "e": end()}
    found = findings(nodes)
    assert [(each.code, each.node) for each in found] == [("ARMS_OVERLAP", "a")]
    assert [each.json_path for each in found[0].related] == ["nodes.p.arms.a", "nodes.p.arms.again"]


def test_an_arm_that_ends_the_workflow_is_refused_with_arm_and_end() -> None:
    nodes = {
        "p": parallel("j", "a", "b", "c"),
        "a": task("j"),
        "b": task("j"),
        "c": task("early"),
        "j": join("e"),
        "e": end(),
        "early": end(),
    }
    found = findings(nodes)
    assert [(each.code, each.json_path) for each in found] == [
        ("END_IN_ARM", "nodes.early"),
        ("ARM_NEVER_JOINS", "nodes.p.arms.c"),
    ]


def test_an_end_that_succeeds_on_one_way_through_an_arm_is_refused() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": express("early", "j"),
        "b": task("j"),
        "early": end(),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == [("END_IN_ARM", "early")]


def test_an_arm_that_only_fails_never_joins() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": task("broken"),
        "broken": fail(),
        "b": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == [("ARM_NEVER_JOINS", "p")]


def test_a_join_of_another_parallel_is_refused_at_the_step_that_leads_there() -> None:
    nodes = {
        "p": parallel("j", "q", "b"),
        "q": parallel("k", "c", "d"),
        "c": task("k"),
        "d": task("j"),
        "b": task("j"),
        "k": join("j"),
        "j": join("e"),
        "e": end(),
    }
    found = findings(nodes)
    assert [(each.code, each.json_path) for each in found] == [("JOIN_FOREIGN", "nodes.d.next")]
    assert found[0].related[0].node == "p"


def test_a_way_past_the_join_is_refused_where_it_meets_the_main_line() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": task("after"),
        "b": task("j"),
        "j": join("after"),
        "after": task("e"),
        "e": end(),
    }
    found = findings(nodes)
    assert [(each.code, each.node) for each in found] == [("ARM_CROSSED", "after")]
    assert "the main line" in found[0].message
    assert "arm 'a' of 'p'" in found[0].message


def test_a_way_into_an_arm_from_outside_is_refused() -> None:
    nodes = {
        "s": express("p", "a"),
        "p": parallel("j", "a", "b"),
        "a": task("j"),
        "b": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == [("ARM_CROSSED", "a")]


def test_two_arms_that_share_a_step_are_refused() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": task("both"),
        "b": task("both"),
        "both": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes)[0] == ("ARMS_OVERLAP", "both")


def test_a_way_from_an_inner_arm_to_the_outer_arm_is_refused() -> None:
    nodes = {
        "p": parallel("j", "q", "b"),
        "q": parallel("k", "c", "d"),
        "c": express("k", "late"),
        "d": task("k"),
        "k": join("late"),
        "late": task("j"),
        "b": task("j"),
        "j": join("e"),
        "e": end(),
    }
    assert told(nodes) == [("ARM_CROSSED", "late")]


def test_a_join_without_a_parallel_is_refused() -> None:
    assert told({"a": task("j"), "j": join("e"), "e": end()})[0] == ("JOIN_ALONE", "j")


def test_a_join_as_the_first_step_is_refused() -> None:
    nodes = {"j": join("p"), "p": parallel("j", "a", "b"), "a": task("j"), "b": task("e"), "e": end()}
    assert told(nodes) == [("GRAPH_CYCLE", "a")]
    straight = {**nodes, "a": task("x"), "x": fail(), "b": task("y"), "y": fail()}
    del straight["e"]
    assert ("ARM_NEVER_JOINS", "p") in told(straight)


def test_a_join_before_its_parallel_is_refused() -> None:
    nodes = {
        "s": task("j"),
        "j": join("p"),
        "p": parallel("j", "a", "b"),
        "a": task("x"),
        "b": task("y"),
        "x": fail(),
        "y": fail(),
    }
    assert ("JOIN_FOREIGN", "s") in told(nodes)


def test_two_parallels_cannot_share_a_join() -> None:
    nodes = {
        "s": express("p", "q"),
        "p": parallel("j", "a", "b"),
        "q": parallel("j", "c", "d"),
        "a": task("j"),
        "b": task("j"),
        "c": task("j"),
        "d": task("j"),
        "j": join("e"),
        "e": end(),
    }
    found = findings(nodes)
    assert [(each.code, each.node) for each in found] == [("JOIN_SHARED", "j")]
    assert [each.node for each in found[0].related] == ["p", "q"]


def test_a_merge_may_stand_in_an_arm_and_after_a_join() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": wait("m", on_timeout={"next": "m"}),
        "m": merge("j", {"type": "boolean"}, ("a", "next", const(True)), ("a", "on_timeout", const(False))),
        "b": task("j"),
        "j": join("n"),
        "n": merge("e", {}, ("j", "next", const(1))),
        "e": end(),
    }
    assert told(nodes) == []


def nested(depth: int) -> dict[str, object]:
    nodes: dict[str, object] = {"e": end(), "leaf": task(f"j{depth - 1}")}
    for level in range(depth):
        inner = f"p{level + 1}" if level + 1 < depth else "leaf"
        nodes[f"p{level}"] = parallel(f"j{level}", inner, f"side{level}")
        nodes[f"side{level}"] = task(f"j{level}")
        nodes[f"j{level}"] = join(f"j{level - 1}" if level else "e")
    return nodes


def test_nesting_has_a_limit_that_is_told_once() -> None:
    assert told(nested(8), "p0") == []
    (found,) = findings(nested(12), "p0")
    assert (found.code, found.node) == ("NESTED_TOO_DEEP", "p8")
    assert "depth 9" in found.message
    (lowered,) = findings(nested(3), "p0", limits=Limits(nesting=2))
    assert lowered.node == "p2"


def test_arms_have_a_limit() -> None:
    arms = [f"a{number}" for number in range(33)]
    nodes = {
        "p": parallel("j", *arms),
        **{arm: task("j") for arm in arms},
        "j": join("e"),
        "e": end(),
    }
    (found,) = findings(nodes)
    assert (found.code, found.json_path) == ("TOO_MANY_ARMS", "nodes.p.arms")
