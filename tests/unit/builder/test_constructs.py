"""What each construct compiles to."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import orbit_sdk as orbit
from orbit_sdk.values.defaults import DEFAULTS
from tests.unit.builder.shop import (
    ANSWER,
    Color,
    Inner,
    Order,
    Pair,
    Result,
    compiled,
    everything,
    look,
    nodes,
    pay,
    work,
)

DAY = timedelta(days=1)


def edges(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    """(node, exit, target) of every edge."""
    edges: set[tuple[str, str, str]] = set()
    for key, node in found.items():
        for name in ("next", "otherwise"):
            if name in node:
                edges.add((key, name, node[name]))
        for name in ("on_failure", "on_timeout", "on_failed"):
            if isinstance(node.get(name), dict):
                edges.add((key, name, node[name]["next"]))
        edges |= {(key, f"cases.{n}", case["next"]) for n, case in enumerate(node.get("cases", []))}
        edges |= {(key, f"arms.{name}", entry) for name, entry in node.get("arms", {}).items()}
    return edges


def test_a_step_writes_every_default() -> None:
    assert nodes(lambda order: work(order.order_id))["work"] == {
        "kind": "TASK",
        "handler": "shop.work@1",
        "queue": "shop",
        "input": {"text": {"ref": "input", "path": ["order_id"]}, "count": {"const": 0}},
        "attempt_timeout_ms": DEFAULTS.attempt_timeout_ms,
        "total_timeout_ms": DEFAULTS.total_timeout_ms,
        "priority": DEFAULTS.priority,
        "retry": {
            "max_attempts": DEFAULTS.attempts,
            "backoff_ms": DEFAULTS.backoff_ms,
            "factor_percent": DEFAULTS.backoff_factor_percent,
            "max_backoff_ms": DEFAULTS.max_backoff_ms,
            "jitter_percent": DEFAULTS.jitter_percent,
        },
        "on_failure": "REVIEW",
        "next": "done",
    }


def test_read_only_steps_tolerate_longer_outages() -> None:
    assert nodes(lambda _: look("a"))["look"]["retry"]["max_attempts"] == DEFAULTS.attempts_read_only


def test_options_are_written() -> None:
    step = work.options(
        key="mine",
        title="Mine",
        attempt_timeout=timedelta(seconds=2),
        total_timeout=timedelta(hours=1),
        start_within=timedelta(minutes=1),
        retry=orbit.Retry(attempts=2, backoff=timedelta(seconds=3), factor=1.5, jitter_percent=0),
        priority=9,
        concurrency_key="account:1",
        fairness_key="team",
        on_failure="FAIL",
        review=orbit.Guide("Look at the ledger.", url="https://example.org"),
    )
    node = nodes(lambda _: step("a"))["mine"]
    assert node["title"] == "Mine"
    assert node["attempt_timeout_ms"] == 2000
    assert node["total_timeout_ms"] == 3_600_000
    assert node["start_within_ms"] == 60_000
    assert node["retry"] == {
        "max_attempts": 2,
        "backoff_ms": 3000,
        "factor_percent": 150,
        "max_backoff_ms": 600_000,
        "jitter_percent": 0,
    }
    assert node["priority"] == 9
    assert node["concurrency_key"] == {"const": "account:1"}
    assert node["fairness_key"] == {"const": "team"}
    assert node["on_failure"] == "FAIL"
    assert node["review"] == {"guide": "Look at the ledger.", "url": "https://example.org"}


def test_a_key_may_be_a_reference() -> None:
    def body(order: Order) -> Any:
        return work.options(concurrency_key=order.order_id)("a")

    assert nodes(body)["work"]["concurrency_key"] == {"ref": "input", "path": ["order_id"]}


def test_the_workflow_sets_the_failure_policy() -> None:
    assert nodes(lambda _: work("a"), on_failure="FAIL")["work"]["on_failure"] == "FAIL"


def test_step_keys_follow_the_handler_s_function_in_order() -> None:
    found = nodes(lambda _: [work("a"), work("b"), work("c"), None][3])
    assert [found[key]["next"] for key in ("work", "work_2", "work_3")] == ["work_2", "work_3", "done"]


def test_literals_and_references_are_mixed_in_lists_and_objects() -> None:
    def body(order: Order) -> Any:
        everything(
            tags=["a", order.order_id],
            extra={"a": 1, "b": order.rows},
            anything={"deep": [{"er": order.ok}]},
            inners=[orbit.build(Inner, code=order.order_id), Inner(code="x")],
            inner={"code": order.order_id},  # type: ignore[arg-type]
            ratio=1,
            color=Color.BLUE,
        )

    given = nodes(body)["everything"]["input"]
    path = {"ref": "input", "path": ["order_id"]}
    assert given["tags"] == {"array": [{"const": "a"}, path]}
    assert given["extra"] == {"object": {"a": {"const": 1}, "b": {"ref": "input", "path": ["rows"]}}}
    assert given["anything"] == {
        "object": {"deep": {"array": [{"object": {"er": {"ref": "input", "path": ["ok"]}}}]}}
    }
    assert given["inners"] == {
        "array": [
            {"object": {"code": path, "size": {"const": None}}},
            {"const": {"code": "x", "size": None}},
        ]
    }
    assert given["inner"] == {"object": {"code": path, "size": {"const": None}}}
    assert given["price"] == {"const": "1.50"}
    assert given["color"] == {"const": "blue"}
    assert given["ratio"] == {"const": 1.0}


def test_a_built_value_may_be_read_again() -> None:
    def body(order: Order) -> Any:
        pair = orbit.build(Pair, order.order_id)
        return work(pair.left, pair.right)

    given = nodes(body)["work"]["input"]
    assert given == {"text": {"ref": "input", "path": ["order_id"]}, "count": {"const": 3}}


def test_text_is_a_template_of_pieces() -> None:
    def body(order: Order) -> Any:
        work(orbit.text("{{job}}-{}-{}-{}", order.order_id, 7, order.rows))
        work(orbit.text("a-{}", "b"))

    found = nodes(body)
    assert found["work"]["input"]["text"] == {
        "text": [
            "{job}-",
            {"ref": "input", "path": ["order_id"]},
            "-7-",
            {"ref": "input", "path": ["rows"]},
        ]
    }
    assert found["work_2"]["input"]["text"] == {"const": "a-b"}


def test_conditions_are_data() -> None:
    def body(order: Order) -> Any:
        condition = orbit.all_of(
            order.ok,
            (order.rows > 1) | (order.rows <= 2),
            orbit.not_(order.note == None),  # noqa: E711 - a reference records it
            order.price >= Decimal("1.5"),
            orbit.is_in(order.color, [Color.RED]),
            order.due != order.due,
            orbit.any_of(orbit.is_null(order.maybe), order.order_id == "a"),
        )
        orbit.branch(orbit.when(condition, lambda: work("a")), orbit.otherwise(lambda: None))

    def at(*path: str) -> dict[str, Any]:
        return {"ref": "input", "path": list(path)}

    assert nodes(body)["if_ok"]["cases"][0]["when"] == {
        "and": [
            {"eq": [at("ok"), {"const": True}]},
            {"or": [{"gt": [at("rows"), {"const": 1}]}, {"le": [at("rows"), {"const": 2}]}]},
            {"not": {"is_null": at("note")}},
            {"ge": [at("price"), {"const": "1.5"}], "as": "decimal"},
            {"in": {"value": at("color"), "among": ["red"]}},
            {"ne": [at("due"), at("due")], "as": "date-time"},
            {"or": [{"is_null": at("maybe")}, {"eq": [at("order_id"), {"const": "a"}]}]},
        ]
    }


def test_arms_that_leave_a_value_meet_at_a_merge() -> None:
    def body(order: Order) -> Any:
        return orbit.branch(
            orbit.when(order.ok, lambda: work("a")),
            orbit.when(order.rows > 3, lambda: orbit.fail("MANY", "too many")),
            orbit.otherwise(lambda: orbit.build(Result, value="none")),
        )

    found = nodes(body)
    assert found["result"] == {
        "kind": "MERGE",
        "result": {"$ref": "#/types/Result"},
        "inputs": [
            {"from": "work", "exit": "next", "value": {"ref": "work"}},
            {"from": "if_ok", "exit": "otherwise", "value": {"const": {"value": "none", "state": "open"}}},
        ],
        "next": "done",
    }
    assert edges(found) == {
        ("if_ok", "cases.0", "work"),
        ("if_ok", "cases.1", "many"),
        ("if_ok", "otherwise", "result"),
        ("work", "next", "result"),
        ("result", "next", "done"),
    }


def test_a_value_that_nobody_uses_makes_no_merge() -> None:
    def body(order: Order) -> Any:
        orbit.branch(
            orbit.when(
                order.ok,
                lambda: orbit.branch(
                    orbit.when(order.rows > 1, lambda: work("a")), orbit.otherwise(lambda: look("b"))
                ),
            ),
            orbit.otherwise(lambda: None),
        )
        work("c")

    found = nodes(body)
    assert all(node["kind"] != "MERGE" for node in found.values())
    assert {
        ("work", "next", "work_2"),
        ("look", "next", "work_2"),
        ("if_ok", "otherwise", "work_2"),
    } <= edges(found)


def test_a_nested_value_that_only_the_outer_meeting_needs_keeps_both() -> None:
    def body(order: Order) -> Any:
        inner = lambda: orbit.branch(  # noqa: E731 - an arm
            orbit.when(order.rows > 1, lambda: work("a")), orbit.otherwise(lambda: look("b"))
        )
        return orbit.branch(orbit.when(order.ok, inner), orbit.otherwise(lambda: pay("c")))

    merges = {key: node for key, node in nodes(body).items() if node["kind"] == "MERGE"}
    assert {key: len(node["inputs"]) for key, node in merges.items()} == {"result": 2, "result_2": 2}


def test_the_only_arm_that_goes_on_needs_no_merge() -> None:
    def body(order: Order) -> Any:
        result = orbit.branch(
            orbit.when(order.ok, lambda: work("a")), orbit.otherwise(lambda: orbit.fail("NO", "no"))
        )
        return look(result.value)

    found = nodes(body)
    assert set(found) == {"if_ok", "work", "no", "look", "done"}
    assert found["look"]["input"]["text"] == {"ref": "work", "path": ["value"]}


def test_a_workflow_may_fail_on_every_way() -> None:
    def body(order: Order) -> Any:
        return orbit.branch(
            orbit.when(order.ok, lambda: orbit.fail("ONE", "one")),
            orbit.otherwise(lambda: orbit.fail("TWO", "two")),
        )

    assert set(nodes(body)) == {"if_ok", "one", "two"}


@pytest.mark.parametrize(
    "arms",
    [
        {Color.RED: lambda: work("a"), Color.BLUE: lambda: work("b")},
        {"red": lambda: work("a"), "blue": lambda: work("b")},
    ],
)
def test_enum_members_and_their_values_give_the_same_document(arms: Any) -> None:
    node = nodes(lambda order: orbit.match(order.color, arms))["by_color"]
    assert node == {
        "kind": "BRANCH",
        "on": {"ref": "input", "path": ["color"]},
        "cases": [{"equals": ["red"], "next": "work"}, {"equals": ["blue"], "next": "work_2"}],
    }


def test_one_function_under_several_values_is_one_arm() -> None:
    def shared() -> Any:
        return work("a")

    def body(order: Order) -> Any:
        return orbit.match(work("x").state, {"open": shared, "void": shared, "done": lambda: work("b")})

    assert nodes(body)["by_state"]["cases"] == [
        {"equals": ["open", "void"], "next": "work_2"},
        {"equals": ["done"], "next": "work_3"},
    ]


def test_match_takes_an_otherwise() -> None:
    def body(order: Order) -> Any:
        orbit.match(order.note, {"a": lambda: work("a")}, otherwise=lambda: None)

    assert nodes(body)["by_note"]["otherwise"] == "done"


def test_when_some_makes_an_optional_certain() -> None:
    def body(order: Order) -> Any:
        size = orbit.when_some(order.maybe, lambda inner: work(inner.code))
        return orbit.when_some(size, lambda result: look(result.value), lambda: pay("none"))

    found = nodes(body)
    assert found["if_maybe"]["cases"][0]["when"] == {"not": {"is_null": {"ref": "input", "path": ["maybe"]}}}
    assert found["work"]["input"]["text"] == {"ref": "input", "path": ["maybe", "code"]}


def test_a_tested_optional_may_be_used_in_its_arm() -> None:
    def body(order: Order) -> Any:
        orbit.branch(
            orbit.when(orbit.is_null(order.note), lambda: work("none")),
            orbit.otherwise(lambda: work(order.note)),  # type: ignore[arg-type]
        )
        orbit.branch(
            orbit.when(orbit.not_(orbit.is_null(order.maybe)), lambda: work(order.maybe.code)),  # type: ignore[union-attr]
            orbit.otherwise(lambda: None),
        )

    assert nodes(body)["work_2"]["input"]["text"] == {"ref": "input", "path": ["note"]}


def test_parallel_arms_are_named_after_their_entries() -> None:
    def body(order: Order) -> Any:
        first, second = orbit.parallel(
            lambda: work("a"), lambda: look("b"), on_arm_failure="LET_OTHERS_FINISH"
        )
        return pay(orbit.text("{}{}", first.value, second.value))

    found = nodes(body)
    assert found["work_and_look"] == {
        "kind": "PARALLEL",
        "arms": {"work": "work", "look": "look"},
        "join": "work_and_look_done",
        "on_arm_failure": "LET_OTHERS_FINISH",
    }
    assert found["work"]["next"] == found["look"]["next"] == "work_and_look_done"
    assert found["work_and_look_done"] == {"kind": "JOIN", "next": "pay"}


def test_forks_nest_five_deep() -> None:
    def step(name: str) -> Any:
        return lambda: work.options(key=name)(name)

    def fork(name: str, *arms: Any) -> Any:
        def arm() -> Any:
            work.options(key=name)(name)
            orbit.parallel(*arms, key=f"fork_{name}")

        return arm

    def body(order: Order) -> Any:
        work.options(key="n1")("1")
        e = fork("e", step("g"), step("h"))
        c = fork("c", e, step("f"))
        a = fork("a", c, step("d"))
        orbit.parallel(a, step("b"), key="fork_n1")

    found = nodes(body)
    assert found["fork_n1"]["arms"] == {"a": "a", "b": "b"}
    assert found["fork_a"]["arms"] == {"c": "c", "d": "d"}
    assert found["fork_c"]["arms"] == {"e": "e", "f": "f"}
    assert found["fork_e"]["arms"] == {"g": "g", "h": "h"}
    assert found["g"]["next"] == found["h"]["next"] == "fork_e_done"
    assert found["fork_e_done"]["next"] == found["f"]["next"] == "fork_c_done"
    assert found["fork_c_done"]["next"] == found["d"]["next"] == "fork_a_done"
    assert found["fork_a_done"]["next"] == found["b"]["next"] == "fork_n1_done"


def test_a_fork_may_hold_branches_that_fail() -> None:
    def checked() -> Any:
        result = work("a")
        return orbit.branch(
            orbit.when(result.value == "bad", lambda: orbit.fail("BAD", "bad")),
            orbit.otherwise(lambda: look("fine")),
        )

    def body(order: Order) -> Any:
        left, _right = orbit.parallel(checked, lambda: pay("b"))
        return left

    found = nodes(body)
    assert found["bad"]["outcome"] == "FAILED"
    assert found["done"]["output"] == {"ref": "look"}


def test_a_catch_arm_stands_at_the_failure_exit() -> None:
    def body(order: Order) -> Any:
        return pay.options(
            on_failure=lambda failure: orbit.match(
                failure.code,
                {
                    "NO_FUNDS": lambda: orbit.build(Result, value=failure.message),
                    "ATTEMPTS_EXHAUSTED": lambda: orbit.fail("TIRED", "tired"),
                    "EXPIRED": lambda: look("late"),
                },
            )
        )("a")

    found = nodes(body)
    assert found["pay"]["on_failure"] == {"next": "by_code"}
    assert found["by_code"]["on"] == {"ref": "pay", "of": "failure", "path": ["code"]}
    assert [case["equals"] for case in found["by_code"]["cases"]] == [
        ["NO_FUNDS"],
        ["ATTEMPTS_EXHAUSTED"],
        ["EXPIRED"],
    ]
    assert found["pay_result"]["inputs"][0] == {"from": "pay", "exit": "next", "value": {"ref": "pay"}}
    assert found["done"]["output"] == {"ref": "pay_result"}


def test_a_wait_has_a_way_out() -> None:
    def body(order: Order) -> Any:
        ANSWER.wait(match=order.order_id, timeout=DAY, on_timeout="FAIL", key="first")
        return ANSWER.wait(
            match=orbit.text("b-{}", order.order_id),
            timeout=DAY,
            early="KEEP",
            on_timeout=lambda: orbit.build(Result, value="late"),
            review=orbit.Guide("Ask."),
        )

    found = nodes(body)
    assert found["first"] == {
        "kind": "WAIT",
        "signal": "shop.answer",
        "match": {"ref": "input", "path": ["order_id"]},
        "timeout_ms": 86_400_000,
        "early": "DROP",
        "on_timeout": "FAIL",
        "next": "answer",
    }
    assert found["answer"]["early"] == "KEEP"
    assert found["answer"]["on_timeout"] == {"next": "answer_result"}


def test_who_sent_a_signal_is_known() -> None:
    def body(order: Order) -> Any:
        answer = ANSWER.wait(match="a", timeout=DAY, on_timeout=lambda: orbit.fail("LATE", "late"))
        return orbit.branch(
            orbit.when(ANSWER.meta(answer).actor != orbit.instance().started_by, lambda: None),
            orbit.otherwise(lambda: orbit.fail("SAME", "the same person")),
        )

    assert nodes(body)["if_actor"]["cases"][0]["when"] == {
        "ne": [
            {"ref": "answer", "of": "meta", "path": ["actor"]},
            {"ref": "instance", "path": ["started_by"]},
        ]
    }


def test_sleep_is_a_timer() -> None:
    def body(order: Order) -> Any:
        orbit.sleep(timedelta(seconds=1))
        orbit.sleep(order.due)

    found = nodes(body)
    assert found["sleep"] == {"kind": "TIMER", "delay_ms": 1000, "next": "sleep_2"}
    assert found["sleep_2"] == {
        "kind": "TIMER",
        "until": {"ref": "input", "path": ["due"]},
        "next": "done",
    }


def poll(**given: Any) -> Any:
    usual: dict[str, Any] = {
        "every": timedelta(seconds=30),
        "within": timedelta(hours=1),
        "state": lambda s: s.state,
        "pending": {"open"},
        "succeeded": {"done"},
    }
    return orbit.poll(lambda: look("a"), **{**usual, **given})


def test_a_poll_gets_its_rounds_from_its_times() -> None:
    node = nodes(lambda _: poll())["look"]
    assert (node["kind"], node["max_rounds"], node["retry"]["max_attempts"]) == ("POLL", 120, 20)
    assert node["state"] == {"path": ["state"], "pending": ["open"], "succeeded": ["done"], "failed": []}
    assert node["on_exhausted"] == "REVIEW"


def test_a_poll_of_many_rounds_gets_fewer_attempts() -> None:
    node = nodes(lambda _: poll(within=timedelta(hours=7)))["look"]
    assert (node["max_rounds"], node["retry"]["max_attempts"]) == (840, 5)


def test_the_failed_way_of_a_poll_sees_the_result() -> None:
    def body(order: Order) -> Any:
        return poll(failed={"void"}, on_failed=lambda s: work(s.value), final_signal=ANSWER.match("a"))

    found = nodes(body)
    assert found["look"]["on_failed"] == {"next": "work"}
    assert found["work"]["input"]["text"] == {"ref": "look", "path": ["value"]}
    assert found["look"]["final_signal"] == {"signal": "shop.answer", "match": {"const": "a"}}


def test_mutable_defaults_give_the_same_document_each_time() -> None:
    first = compiled(lambda _: everything()).definition.canonical()
    assert compiled(lambda _: everything()).definition.canonical() == first


def test_source_places_stand_beside_the_document() -> None:
    found = compiled(lambda _: work("a"))
    place = found.side["nodes.work"]
    assert place.file == __file__
    assert found.side['handlers["shop.work@1"]'].file.endswith("shop.py")
    assert b"test_constructs" not in found.definition.canonical()
