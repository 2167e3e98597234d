"""What a finding carries, and that the reference page names them all."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from subprocess import run
from typing import Any

from orbit_sdk.check import Diagnostic, Place, Severity, check_definition, errors_of
from orbit_sdk.check.budget.agreed import BUDGET_RULES
from orbit_sdk.check.diagnostics import place_of
from orbit_sdk.check.documents import form_invalid, version_taken
from orbit_sdk.check.rule import Rule
from orbit_sdk.check.rules import ALWAYS, CONNECTED, GROUPS, NESTED, TYPED
from tests.unit.check.documents import const, definition, end, express, findings, task, wait

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "checks.md"


def test_findings_carry_the_nearest_source_place() -> None:
    side = {
        "$": Place("flow.py", 1, 1),
        "nodes.a": Place("flow.py", 7, 5),
        "nodes.a.next": Place("flow.py", 7, 20),
    }
    nodes = {"a": task("b", "do.that@1"), "e": end()}
    handler, step = check_definition(definition(nodes), side=side)
    assert (handler.code, handler.place) == ("HANDLER_MISSING", Place("flow.py", 7, 5))
    assert (step.code, step.place) == ("STEP_MISSING", Place("flow.py", 7, 20))
    assert str(step).startswith("flow.py:7:20: error STEP_MISSING: ")
    assert place_of(("start",), side) == Place("flow.py", 1, 1)
    assert place_of(("start",), {"nodes": Place("flow.py", 2, 2)}) is None


def test_related_places_carry_their_source_too() -> None:
    nodes = {"a": express("b", "e"), "b": task("a"), "e": end()}
    (found,) = check_definition(definition(nodes), side={"nodes.b": Place("flow.py", 9, 1)})
    assert [(each.node, each.place) for each in found.related] == [("a", None), ("b", Place("flow.py", 9, 1))]


def test_without_sources_a_finding_names_its_path() -> None:
    (found,) = findings({"e": end()}, "x")
    assert str(found).startswith("start: error START_MISSING: ")
    assert found.place is None


def test_errors_come_first_and_the_order_is_always_the_same() -> None:
    nodes = {
        "a": task("b", "do.that@1"),
        "b": wait("c", signal="nothing"),
        "c": task("e", attempt_timeout_ms=3600001),
        "e": end(const("x")),
    }
    first = findings(nodes)
    assert [found.severity for found in first] == sorted(found.severity for found in first)
    turned = findings(dict(reversed(nodes.items())), "a")
    assert first == turned
    assert errors_of(first) == tuple(found for found in first if found.severity is Severity.ERROR)


def test_every_rule_runs_in_exactly_one_stage() -> None:
    staged = [rule.code for rule in (*ALWAYS, *CONNECTED, *NESTED, *TYPED)]
    grouped = [rule.code for rules in GROUPS.values() for rule in rules]
    assert sorted(staged) == sorted(grouped)
    assert len(set(staged)) == len(staged)


def test_every_rule_says_in_sentences_what_is_wrong_and_what_to_do() -> None:
    for rules in GROUPS.values():
        for rule in rules:
            assert re.fullmatch(r"[A-Z][A-Z_]+[A-Z]", rule.code)
            for sentence in (rule.says, rule.remedy):
                assert sentence[0].isupper(), rule.code
                assert sentence.endswith("."), rule.code
                assert "\n" not in sentence, rule.code


def test_the_reference_page_has_every_code_with_its_sentence_and_remedy() -> None:
    text = PAGE.read_text("utf-8")
    groups = re.findall(r"^## (.+)$", text, re.MULTILINE)
    every: dict[str, tuple[Rule[Any], ...]] = {
        "form": (form_invalid,),
        **GROUPS,
        "budget": BUDGET_RULES,
        "version": (version_taken,),
    }
    assert [group.lower() for group in groups] == list(every)
    entries = re.findall(
        r"^### ([A-Z_]+)( \(warning\))?\n\n(.+)\n\n\*What to do:\* (.+)$", text, re.MULTILINE
    )
    expected = [
        (rule.code, " (warning)" if rule.severity is Severity.WARNING else "", rule.says, rule.remedy)
        for rules in every.values()
        for rule in rules
    ]
    assert entries == expected


def test_a_sound_definition_is_checked_without_loading_networkx() -> None:
    program = (
        "import sys\n"
        "from tests.unit.check.documents import definition, end, task\n"
        "from orbit_sdk.check import check_definition\n"
        "assert check_definition(definition({'a': task('e'), 'e': end()})) == ()\n"
        "assert 'networkx' not in sys.modules\n"
    )
    done = run(
        [sys.executable, "-c", program], cwd=PAGE.parents[2], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_findings_are_frozen_values() -> None:
    found = Diagnostic("CODE", Severity.ERROR, None, "$", "It is so.", "Change it.")
    assert found == Diagnostic("CODE", Severity.ERROR, None, "$", "It is so.", "Change it.")
    assert len({found, found}) == 1
