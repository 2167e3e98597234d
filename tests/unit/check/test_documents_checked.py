"""Whole documents: their form as findings, their version, and the error that answers a publication."""

from __future__ import annotations

from orbit_sdk.check import Place, check_document, check_version, refusal
from orbit_sdk.definition.models import definition_digest
from tests.unit.check.documents import const, decide, definition, document, end, handler, record, task, timer

SOUND = {"a": task("e"), "e": end()}


def test_a_sound_document_gives_its_definition() -> None:
    checked = check_document(document(SOUND))
    assert checked.is_sound
    assert checked.definition == definition(SOUND)
    assert refusal(checked.diagnostics) is None


def test_a_document_out_of_form_gives_findings_with_step_path_and_source() -> None:
    sound = {"is_null": const(None)}
    nodes = {"t": timer("t", 0), "b": decide((sound, "t"), (const(1), "t"), otherwise="t")}
    side = {"nodes.t": Place("flow.py", 3, 1)}
    handlers = {"a.b@1": {**handler(), "result": {"type": "odd"}}}
    checked = check_document(document(nodes, handlers=handlers), side=side)
    assert checked.definition is None
    assert not checked.is_sound
    assert [(each.code, each.node, each.json_path, each.place) for each in checked.diagnostics] == [
        ("FORM_INVALID", None, 'handlers["a.b@1"].result', None),
        ("FORM_INVALID", "b", "nodes.b.cases[1].when", None),
        ("FORM_INVALID", "t", "nodes.t.delay_ms", Place("flow.py", 3, 1)),
    ]


def test_something_that_is_no_object_is_a_finding_about_the_whole() -> None:
    (found,) = check_document([1]).diagnostics
    assert (found.code, found.node, found.json_path) == ("FORM_INVALID", None, "$")


def test_findings_become_one_error_with_a_detail_each() -> None:
    checked = check_document(document({"a": task("x", "no.such@1"), "e": end()}))
    assert not checked.is_sound
    error = refusal(checked.diagnostics)
    assert error is not None
    assert error.code == "INVALID_ARGUMENT"
    assert "and 1 more" in error.message
    assert [detail.field for detail in error.details] == ["nodes.a.handler", "nodes.a.next"]
    assert error.details[0].reason.startswith("HANDLER_MISSING: ")
    only = refusal(check_document(document({"a": task("x"), "e": end()})).diagnostics)
    assert only is not None
    assert "more" not in only.message


def test_a_version_belongs_to_one_content() -> None:
    first, second = definition(SOUND), definition(SOUND, input=record())
    known = {1: definition_digest(first), 4: "0" * 64}
    assert check_version(first, known) == ()
    assert check_version(first, {}) == ()
    (found,) = check_version(second, known)
    assert (found.code, found.json_path) == ("VERSION_TAKEN", "version")
    assert "version 5" in found.help
