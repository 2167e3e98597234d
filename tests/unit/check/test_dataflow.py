"""What is certain to be known where, and MERGE inputs."""

from __future__ import annotations

from tests.unit.check.documents import (
    TEXT,
    Document,
    choose,
    const,
    decide,
    end,
    express,
    fail,
    findings,
    handler,
    join,
    merge,
    optional,
    parallel,
    poll,
    record,
    ref,
    task,
    told,
    wait,
)

MAKE = {"make@1": handler(record(id=TEXT)), "use@1": handler(parameters={"id": TEXT})}


def use(path: str, next_key: str, **more: object) -> dict[str, object]:
    return task(next_key, "use@1", input={"id": ref(path, **more)})


def test_a_result_of_an_earlier_step_is_known() -> None:
    assert told({"x": task("m", "make@1"), "m": use("x.id", "e"), "e": end(ref("x"))}, handlers=MAKE) == []


def test_a_result_from_one_way_of_a_branch_is_not_known_where_the_ways_meet() -> None:
    nodes = {"b": express("x", "m"), "x": task("m", "make@1"), "m": use("x.id", "e"), "e": end()}
    (found,) = findings(nodes, handlers=MAKE)
    assert (found.code, found.json_path) == ("FACT_UNCERTAIN", "nodes.m.input.id")
    assert found.message.startswith("x.id at 'm'")
    assert [each.json_path for each in found.related] == ["nodes.b.cases[1].next"]


def test_the_output_of_an_end_is_looked_at_too() -> None:
    nodes = {"b": express("x", "e"), "x": task("e", "make@1"), "e": end({"object": {"id": ref("x.id")}})}
    (found,) = findings(nodes, handlers=MAKE)
    assert (found.code, found.json_path) == ("FACT_UNCERTAIN", "nodes.e.output.object.id")


def test_a_result_of_a_later_step_or_of_the_step_itself_is_not_known() -> None:
    later = findings({"m": use("x.id", "x"), "x": task("e", "make@1"), "e": end()}, handlers=MAKE)
    assert [(each.code, each.node, each.related) for each in later] == [("FACT_UNCERTAIN", "m", ())]
    assert "later" in later[0].message
    both = {"both@1": handler(record(id=TEXT), parameters={"id": TEXT})}
    own = findings({"m": task("e", "both@1", input={"id": ref("m.id")}), "e": end()}, handlers=both)
    assert [(each.code, each.node) for each in own] == [("FACT_UNCERTAIN", "m")]
    assert "before the step itself" in own[0].message


def test_the_other_way_of_a_branch_knows_nothing_of_this_one() -> None:
    nodes = {"b": express("x", "m"), "x": task("e", "make@1"), "m": use("x.id", "e"), "e": end()}
    (found,) = findings(nodes, handlers=MAKE)
    assert "another way" in found.message


def test_a_wait_that_timed_out_left_no_body() -> None:
    nodes = {
        "w": wait("e", on_timeout={"next": "late"}),
        "late": use("w.answer", "e"),
        "e": end(),
    }
    (found,) = findings(nodes, handlers=MAKE)
    assert (found.code, found.node) == ("FACT_UNCERTAIN", "late")


def test_a_received_signal_tells_who_sent_it() -> None:
    nodes = {
        "w": wait("c", on_timeout="FAIL"),
        "c": decide(({"ne": [ref("w.actor", of="meta"), ref("instance.started_by")]}, "e"), otherwise="f"),
        "e": end(),
        "f": fail(),
    }
    assert told(nodes) == []


def test_a_failure_is_known_only_on_its_exit() -> None:
    caught = {
        "x": task("e", "make@1", on_failure={"next": "c"}),
        "c": use("x.code", "e", of="failure"),
        "e": end(),
    }
    assert told(caught, handlers=MAKE) == []
    not_there = {**caught, "c": use("x.id", "e")}
    assert told(not_there, handlers=MAKE) == [("FACT_UNCERTAIN", "c")]


def test_a_failed_answer_is_known_on_its_exit() -> None:
    nodes = {
        "q": poll("e", on_failed={"next": "c"}),
        "c": use("q.state", "e"),
        "e": end(ref("q.state")),
    }
    assert told(nodes, handlers=MAKE) == []


def test_a_join_knows_what_all_its_arms_know() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": task("j", "make@1"),
        "b": task("j", "make@1"),
        "j": join("e"),
        "e": end({"array": [ref("a.id"), ref("b.id")]}),
    }
    assert told(nodes, handlers=MAKE) == []


def test_a_join_does_not_know_what_only_one_way_through_an_arm_knows() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": express("x", "j"),
        "x": task("j", "make@1"),
        "b": task("j", "make@1"),
        "j": join("e"),
        "e": end(ref("x.id")),
    }
    assert told(nodes, handlers=MAKE) == [("FACT_UNCERTAIN", "e")]


def test_arms_know_nothing_of_each_other() -> None:
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": task("j", "make@1"),
        "b": use("a.id", "j"),
        "j": join("e"),
        "e": end(),
    }
    (found,) = findings(nodes, handlers=MAKE)
    assert (found.code, found.node) == ("FACT_UNCERTAIN", "b")
    assert "another way" in found.message


def test_a_way_that_fails_takes_nothing_away_from_the_others() -> None:
    nodes = {
        "b": express("x", "f"),
        "x": task("m", "make@1"),
        "f": fail(),
        "m": use("x.id", "e"),
        "e": end(),
    }
    assert told(nodes, handlers=MAKE) == []


def test_a_merge_chooses_a_value_for_every_way() -> None:
    nodes = {
        "b": express("x", "y"),
        "x": task("m", "make@1"),
        "y": task("m", "make@1"),
        "m": merge("u", TEXT, ("x", "next", ref("x.id")), ("y", "next", ref("y.id"))),
        "u": use("m", "e"),
        "e": end(),
    }
    assert told(nodes, handlers=MAKE) == []


def test_a_merge_input_may_read_only_what_its_own_way_knows() -> None:
    nodes = {
        "b": express("x", "y"),
        "x": task("m", "make@1"),
        "y": task("m", "make@1"),
        "m": merge("e", TEXT, ("x", "next", ref("y.id")), ("y", "next", ref("y.id"))),
        "e": end(),
    }
    (found,) = findings(nodes, handlers=MAKE)
    assert (found.code, found.json_path) == ("FACT_UNCERTAIN", "nodes.m.inputs[0].value")


def test_a_merge_has_one_input_for_every_edge() -> None:
    one = const("a")
    nodes = {
        "b": choose(ref("input.tier"), ("TOP", "m"), ("PLUS", "m"), otherwise="x"),
        "x": task("m"),
        "m": merge(
            "e",
            TEXT,
            ("b", "cases.0", one),
            ("b", "cases.0", one),
            ("x", "on_failure", one),
            ("x", "next", one),
        ),
        "e": end(),
    }
    found = findings(nodes)
    assert [(each.code, each.json_path) for each in found] == [
        ("MERGE_INPUT_MISSING", "nodes.m.inputs"),
        ("MERGE_INPUT_REPEATED", "nodes.m.inputs[1]"),
        ("MERGE_INPUT_UNKNOWN", "nodes.m.inputs[2]"),
    ]
    assert "cases.1 of 'b'" in found[0].message


REMARK = {"note@1": handler(parameters={"text": TEXT})}


def note(next_key: str) -> dict[str, object]:
    return task(next_key, "note@1", input={"text": ref("input.remark")})


def test_an_optional_tested_for_null_is_certain_behind_the_test() -> None:
    null = {"is_null": ref("input.remark")}
    direct = {"b": decide(({"not": null}, "n"), otherwise="e"), "n": note("e"), "e": end()}
    assert told(direct, handlers=REMARK) == []
    reverse = {"b": decide((null, "e"), otherwise="n"), "n": note("e"), "e": end()}
    assert told(reverse, handlers=REMARK) == []
    wrong = {"b": decide((null, "n"), otherwise="e"), "n": note("e"), "e": end()}
    assert told(wrong, handlers=REMARK) != []


def test_what_a_condition_proves_follows_and_or_not_and_equality() -> None:
    null = {"is_null": ref("input.remark")}
    cheap = {"lt": [ref("input.amount"), const(5)]}
    proving: list[Document] = [
        {"and": [{"not": null}, cheap]},
        {"not": {"or": [null, cheap]}},
        {"eq": [ref("input.remark"), const("now")]},
        {"not": {"ne": [const("now"), ref("input.remark")]}},
        {"in": {"value": ref("input.remark"), "among": ["now", "soon"]}},
        {"or": [{"not": null}, {"eq": [ref("input.remark"), const("now")]}]},
    ]
    for condition in proving:
        assert (
            told({"b": decide((condition, "n"), otherwise="e"), "n": note("e"), "e": end()}, handlers=REMARK)
            == []
        )
    not_proving: list[Document] = [
        {"or": [{"not": null}, cheap]},
        {"in": {"value": ref("input.remark"), "among": ["now", None]}},
        {"ne": [ref("input.remark"), const("now")]},
        {"not": {"and": [null, cheap]}},
    ]
    for condition in not_proving:
        found = told(
            {"b": decide((condition, "n"), otherwise="e"), "n": note("e"), "e": end()}, handlers=REMARK
        )
        assert found == [("VALUE_MAY_NOT_FIT", "n")]


def test_a_later_case_knows_that_the_earlier_ones_failed() -> None:
    nodes = {
        "b": decide(
            ({"is_null": ref("input.remark")}, "e"),
            ({"lt": [ref("input.remark"), const("m")]}, "n"),
            otherwise="n",
        ),
        "n": note("e"),
        "e": end(),
    }
    assert told(nodes, handlers=REMARK) == []


def test_a_branch_on_an_optional_makes_it_certain_where_null_is_excluded() -> None:
    mood = optional({"enum": ["CALM", "ANGRY"]})
    more = {
        "input": record(mood=mood),
        "handlers": {"feel@1": handler(parameters={"mood": {"enum": ["ANGRY", "CALM"]}})},
    }
    feel = task("e", "feel@1", input={"mood": ref("input.mood")})
    whole = choose(ref("input.mood"), (["CALM", "ANGRY"], "n"), (None, "e"))
    assert told({"b": whole, "n": feel, "e": end()}, **more) == []
    rest = choose(ref("input.mood"), (None, "e"), otherwise="n")
    assert told({"b": rest, "n": feel, "e": end()}, **more) == []
    loose = choose(ref("input.mood"), ("CALM", "e"), otherwise="n")
    assert told({"b": loose, "n": feel, "e": end()}, **more) == [("VALUE_MAY_NOT_FIT", "n")]
