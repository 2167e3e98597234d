"""Documents that never become a definition: what the reader and the models refuse, and with which path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orbit_sdk.definition.models import definition_digest, load_definition, read_definition
from orbit_sdk.errors import OrbitError
from tests.unit.check.documents import (
    RETRY,
    Document,
    choose,
    const,
    document,
    end,
    parallel,
    poll,
    record,
    ref,
    task,
    timer,
    wait,
)

SOUND = {"a": task("e"), "e": end()}


def text(**more: Any) -> str:
    return json.dumps(document(SOUND, **more), ensure_ascii=False)


def refusal(source: str | bytes) -> OrbitError:
    with pytest.raises(OrbitError) as caught:
        read_definition(source)
    return caught.value


def fields(nodes: Document, start: str | None = None, **more: object) -> str:
    """Paths and reasons of everything that is refused, as one text."""
    with pytest.raises(OrbitError) as caught:
        load_definition(document(nodes, start, **more))
    return "\n".join(f"{detail.field} {detail.reason}" for detail in caught.value.details)


def test_the_document_that_the_traps_are_put_into_is_sound() -> None:
    assert read_definition(text()).start == "a"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"start": "a"', '"start": "e", "start": "a"'),
        ('"e": {"kind": "END"', '"a": {"kind": "JOIN", "next": "e"}, "e": {"kind": "END"'),
        ('"priority": 5', '"priority": -Infinity'),
        ('"priority": 5', '"priority": NaN'),
        ('"priority": 5', '"priority": 1e999'),
        ('"schema_version": 1', f'"schema_version": {"9" * 5000}'),
        ('"attempt_timeout_ms": 60000', '"attempt_timeout_ms": 9007199254740993'),
        ('"schema_version": 1', '"schema_version": "1"'),
        ('"schema_version": 1', '"schema_version": 1.0'),
        ('"schema_version": 1', '"schema_version": true'),
        ('"schema_version": 1', '"schema_version": 2'),
        ('"schema_version": 1, ', ""),
        ('"version": 1', '"version": 1, "titel": "x"'),
        ('"version": 1', '"version": 1, "title": "\\ud800"'),
        ('"version": 1', '"version": 1, "title": "a\\u0000b"'),
        ('"version": 1', "'version': 1"),
        ('"version": 1', '"version": 1,,'),
        ('"attempt_timeout_ms": 60000', '"attempt_timeout_ms": 6e4'),
        ('"attempt_timeout_ms": 60000', '"attempt_timeout_ms": null'),
    ],
)
def test_a_trap_in_the_text_is_refused(old: str, new: str) -> None:
    source = text()
    assert old in source
    assert refusal(source.replace(old, new, 1)).code == "INVALID_ARGUMENT"


def test_the_shape_of_the_whole_is_refused() -> None:
    assert refusal(f"[{text()}]").code == "INVALID_ARGUMENT"
    assert refusal("\ufeff" + text()).code == "INVALID_ARGUMENT"
    assert refusal(text()[:-1] + ",}").code == "INVALID_ARGUMENT"
    listed = json.dumps({**document(SOUND), "nodes": [SOUND]})
    assert "nodes" in str(refusal(listed))


def test_size_is_judged_before_anything_is_parsed() -> None:
    assert refusal(b'{"title":"' + b"x" * 50_000_000 + b'"}').code in (
        "PAYLOAD_TOO_LARGE",
        "INVALID_ARGUMENT",
    )


@pytest.mark.parametrize(
    "key", ["$root", "", "a.b", "cafe\u0301", "__proto__", "a\0", "A", "1a", "input", "instance", "k" * 64]
)
def test_a_step_key_outside_its_grammar_is_refused(key: str) -> None:
    assert "nodes" in fields({key: task("e"), "e": end()}, key)


def test_a_node_of_an_unknown_kind_is_refused_with_its_path() -> None:
    told = fields({"a": {"kind": "LOOP", "next": "e"}, "e": end()})
    assert told.startswith("nodes.a")
    assert "TASK, WAIT, TIMER" in told


@pytest.mark.parametrize(
    ("nodes", "path"),
    [
        ({"p": {**parallel("j"), "arms": {}}, "j": {"kind": "JOIN", "next": "e"}}, "nodes.p.arms"),
        ({"p": parallel("j", "e"), "j": {"kind": "JOIN", "next": "e"}}, "nodes.p.arms"),
        ({"b": {**choose(ref("input.tier")), "cases": [], "otherwise": "e"}}, "nodes.b.cases"),
        ({"b": choose(ref("input.tier"), ([], "e"), otherwise="e")}, "nodes.b.cases[0].equals"),
        ({"q": poll("e", max_rounds=0)}, "nodes.q.max_rounds"),
        ({"q": poll("e", every_ms=0)}, "nodes.q.every_ms"),
        ({"t": timer("e", -5)}, "nodes.t.delay_ms"),
        ({"t": timer("e", 0)}, "nodes.t.delay_ms"),
        ({"w": {key: value for key, value in wait("e").items() if key != "match"}}, "nodes.w.match"),
        (
            {"w": {key: value for key, value in wait("e").items() if key != "on_timeout"}},
            "nodes.w.on_timeout",
        ),
        (
            {"w": {key: value for key, value in wait("e").items() if key != "timeout_ms"}},
            "nodes.w.timeout_ms",
        ),
        ({"a": task("e", retry={**RETRY, "max_attempts": 0})}, "nodes.a.retry.max_attempts"),
        ({"a": task("e", input={"n": const(2**70)})}, "nodes.a.input.n"),
        ({"a": task("e", input={"n": {"const": 1, "ref": "input"}})}, "nodes.a.input.n"),
        ({"a": task("e", on_failure="IGNORE")}, "nodes.a.on_failure"),
        ({"a": task("e", surprise=1)}, "nodes.a.surprise"),
    ],
)
def test_a_node_out_of_form_is_refused_with_its_path(nodes: Document, path: str) -> None:
    assert path in fields({**nodes, "e": end()})


def test_all_faults_of_form_are_told_at_once() -> None:
    told = fields({"q": poll("e", max_rounds=0, every_ms=0), "t": timer("q", 0), "e": end()}, "t")
    assert len(told.splitlines()) == 3


def test_what_changes_the_meaning_changes_the_digest_and_nothing_else_does() -> None:
    first = load_definition(
        document(
            {
                "b": choose(ref("input.tier"), ("TOP", "x"), ("PLUS", "e"), otherwise="e"),
                "x": task("e"),
                "e": end(),
            }
        )
    )
    turned = load_definition(
        document(
            {
                "b": choose(ref("input.tier"), ("PLUS", "e"), ("TOP", "x"), otherwise="e"),
                "x": task("e"),
                "e": end(),
            }
        )
    )
    assert definition_digest(first) != definition_digest(turned)
    nodes = {
        "p": parallel("j", "a", "b"),
        "a": task("j"),
        "b": task("j"),
        "j": {"kind": "JOIN", "next": "e"},
        "e": end(),
    }
    other = {**nodes, "p": parallel("j", "b", "a")}
    digests = {definition_digest(load_definition(document(each, "p"))) for each in (nodes, other)}
    assert len(digests) == 1
    slower = {**nodes, "a": task("j", attempt_timeout_ms=60001)}
    assert definition_digest(load_definition(document(slower, "p"))) not in digests


def test_a_name_keeps_the_form_in_which_it_was_written() -> None:
    composed = load_definition(document(SOUND, title="caf\u00e9"))
    decomposed = load_definition(document(SOUND, title="cafe\u0301"))
    assert definition_digest(composed) != definition_digest(decomposed)


def test_equal_numbers_in_constants_are_one_definition() -> None:
    digests = {
        definition_digest(read_definition(text(input=record()).replace('"const": null', f'"const": {spelt}')))
        for spelt in ("60", "60.0", "6e1")
    }
    assert len(digests) == 1
