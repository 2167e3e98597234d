"""References and the graph as a whole."""

from __future__ import annotations

from typing import Any

from orbit_sdk.check import check_definition
from orbit_sdk.values.limits import DEFAULT_LIMITS
from tests.unit.check.documents import (
    choose,
    definition,
    end,
    express,
    findings,
    handler,
    join,
    parallel,
    poll,
    record,
    ref,
    task,
    timer,
    told,
    wait,
)


def test_a_straight_line_is_sound() -> None:
    assert told({"a": task("b"), "b": timer("e"), "e": end()}) == []


def test_an_end_alone_is_sound() -> None:
    assert told({"e": end()}) == []


def test_a_circle_is_told_once_with_all_its_steps() -> None:
    found = findings(
        {
            "a": task("pause"),
            "pause": timer("ask"),
            "ask": task("decide"),
            "decide": express("e", "pause"),
            "e": end(),
        }
    )
    assert [each.code for each in found] == ["GRAPH_CYCLE"]
    assert "'pause'" in found[0].message
    assert {each.node for each in found[0].related} == {"pause", "ask", "decide"}


def test_a_step_that_leads_to_itself_is_a_circle() -> None:
    assert told({"a": express("a", "e"), "e": end()}) == [("GRAPH_CYCLE", "a")]


def test_a_circle_without_a_way_from_the_start_is_told_as_both() -> None:
    found = told({"a": task("e"), "e": end(), "x": task("y"), "y": task("x")})
    assert found == [("NODE_UNREACHABLE", "x"), ("GRAPH_CYCLE", "x"), ("NODE_UNREACHABLE", "y")]


def test_two_circles_are_both_told() -> None:
    found = told({"a": express("x", "y"), "x": task("x"), "y": express("y", "e"), "e": end()})
    assert found == [("GRAPH_CYCLE", "x"), ("GRAPH_CYCLE", "y")]


def test_a_step_that_only_leads_into_a_circle_never_ends() -> None:
    found = told({"a": express("b", "e"), "b": task("x"), "x": task("y"), "y": task("x"), "e": end()})
    assert found == [("NODE_ENDLESS", "b"), ("GRAPH_CYCLE", "x")]


def test_every_unreachable_step_is_told() -> None:
    found = told({"a": task("e"), "e": end(), "x": task("y"), "y": task("f"), "f": end()})
    assert found == [("NODE_UNREACHABLE", "f"), ("NODE_UNREACHABLE", "x"), ("NODE_UNREACHABLE", "y")]


def test_an_exit_to_nowhere_names_the_target_and_a_near_match() -> None:
    (found,) = findings({"a": task("undoorder"), "undo_order": task("e"), "e": end()})
    assert (found.code, found.node, found.json_path) == ("STEP_MISSING", "a", "nodes.a.next")
    assert "'undoorder'" in found.message
    assert "Did you mean 'undo_order'?" in found.message


def test_every_kind_of_exit_is_looked_at() -> None:
    found = findings(
        {
            "a": task("b", on_failure={"next": "x"}),
            "b": wait("c", on_timeout={"next": "x"}),
            "c": poll("d", on_failed={"next": "x"}),
            "d": choose(ref("input.tier"), ("TOP", "x"), otherwise="x"),
            "p": parallel("j", "d", arm="x"),
            "j": join("x"),
        }
    )
    assert [each.json_path for each in found if each.code == "STEP_MISSING"] == [
        "nodes.a.on_failure.next",
        "nodes.b.on_timeout.next",
        "nodes.c.on_failed.next",
        "nodes.d.cases[0].next",
        "nodes.d.otherwise",
        "nodes.j.next",
        "nodes.p.arms.arm",
    ]


def test_a_start_that_is_no_step_is_told() -> None:
    (found,) = findings({"a": task("e"), "e": end()}, "begin")
    assert (found.code, found.json_path) == ("START_MISSING", "start")
    assert "'begin'" in found.message


def test_a_join_must_exist_and_be_a_join() -> None:
    nodes = {"a": task("e"), "b": task("e"), "e": end()}
    missing = findings({"p": parallel("j", "a", "b"), **nodes})
    assert [(each.code, each.json_path) for each in missing] == [("JOIN_MISSING", "nodes.p.join")]
    wrong = findings({"p": parallel("e", "a", "b"), **nodes})
    assert [each.code for each in wrong] == ["JOIN_MISSING"]
    assert "but an END" in wrong[0].message


def test_handlers_and_signals_must_be_declared() -> None:
    found = findings(
        {
            "a": task("b", "do.that@1"),
            "b": wait("c", signal="decidet"),
            "c": poll("e", final_signal={"signal": "receipt", "match": ref("input.order")}),
            "e": end(),
        }
    )
    assert [(each.code, each.json_path) for each in found] == [
        ("HANDLER_MISSING", "nodes.a.handler"),
        ("SIGNAL_MISSING", "nodes.b.signal"),
        ("SIGNAL_MISSING", "nodes.c.final_signal.signal"),
    ]
    assert "Did you mean 'decided'?" in found[1].message


def test_types_must_exist_and_lead_somewhere() -> None:
    nowhere = {"$ref": "#/types/Nowhere"}
    found = findings(
        {"e": end()},
        types={"A": {"$ref": "#/types/B"}, "B": {"$ref": "#/types/A"}, "C": record(inner=nowhere)},
        handlers={"h.h@1": handler(nowhere, parameters={"p": nowhere})},
        signals={"s": {"body": nowhere}},
        output=nowhere,
    )
    assert [(each.code, each.json_path) for each in found] == [
        ("TYPE_MISSING", 'handlers["h.h@1"].parameters.p'),
        ("TYPE_MISSING", 'handlers["h.h@1"].result'),
        ("TYPE_MISSING", "output"),
        ("TYPE_MISSING", "signals.s.body"),
        ("TYPE_ENDLESS", "types.A"),
        ("TYPE_ENDLESS", "types.B"),
        ("TYPE_MISSING", "types.C.properties.inner"),
    ]


def test_a_handler_declares_what_it_requires_and_verifies_what_it_promises() -> None:
    found = told(
        {"e": end()},
        handlers={"a.a@1": handler(required=["x"]), "b.b@1": handler(recovery="VERIFIABLE")},
    )
    assert found == [("PARAMETER_UNDECLARED", None), ("VERIFY_MISSING", None)]
    assert told({"e": end()}, handlers={"b.b@1": handler(recovery="VERIFIABLE", verify=True)}) == []


def test_references_name_steps_that_leave_such_facts() -> None:
    found = findings(
        {
            "a": task("t", input={"x": ref("nobody.id")}),
            "t": timer("b"),
            "b": task("e", input={"x": ref("t"), "y": ref("input", of="failure"), "z": ref("a", of="meta")}),
            "e": end(),
        }
    )
    assert [(each.code, each.json_path) for each in found] == [
        ("FACT_MISSING", "nodes.a.input.x"),
        ("FACT_MISSING", "nodes.b.input.x"),
        ("FACT_MISSING", "nodes.b.input.y"),
        ("FACT_MISSING", "nodes.b.input.z"),
    ]
    assert "nobody.id" in found[0].message


def test_the_order_of_keys_has_no_meaning() -> None:
    nodes = {"e": end(), "b": task("e", input={}), "a": task("b")}
    assert check_definition(definition(nodes, "a")) == ()


def test_words_that_look_reserved_are_step_keys() -> None:
    names = ["end", "join", "root", "in_", "task"]
    nodes = {name: task(following) for name, following in zip(names, [*names[1:], "last"], strict=True)}
    assert told({**nodes, "last": end()}, "end") == []
    longest = "k" + "0_" * 31
    assert told({longest: task("e"), "e": end()}) == []


def test_a_chain_of_names_has_an_end_within_the_limit() -> None:
    def chained(length: int, wrap: Any) -> list[tuple[str, str | None]]:
        types = {f"T{n}": wrap({"$ref": f"#/types/T{n + 1}"}) for n in range(1, length)}
        types[f"T{length}"] = {"type": "string"}
        found = findings({"e": end(ref("input"))}, types=types, input={"$ref": "#/types/T1"}, output={})
        return [(each.code, each.json_path) for each in found]

    def plain(inner: Any) -> Any:
        return inner

    def optional(inner: Any) -> Any:
        return {"anyOf": [inner, {"type": "null"}]}

    for wrap in (plain, optional):
        assert chained(DEFAULT_LIMITS.type_chain, wrap) == []
        assert chained(1_500, wrap) == [("TYPE_CHAIN_LONG", f"types.T{1_500 - DEFAULT_LIMITS.type_chain}")]
    assert chained(500, lambda inner: record(inner=inner)) == []
