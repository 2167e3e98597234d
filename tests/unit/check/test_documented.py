"""The page of checks: its document is sound, and each example breaks exactly the rule that it stands under.

An example is a JSON merge patch (RFC 7396) on the document; `$limits` lowers limits as a server may.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orbit_sdk.check import check_document, check_version
from orbit_sdk.check.budget import budget_of, check_budget
from orbit_sdk.definition.models import definition_digest, load_definition
from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "checks.md"

BLOCK = re.compile(r"```json\n(.+?)```", re.DOTALL)
PARTS = re.split(r"^### ([A-Z_]+)(?: \(warning\))?$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
DOCUMENT: dict[str, Any] = json.loads(BLOCK.findall(PARTS[0])[0])
EXAMPLES = dict(zip(PARTS[1::2], PARTS[2::2], strict=True))

ALSO = {
    "NODE_ENDLESS": {"GRAPH_CYCLE"},
    "JOIN_SHARED": {"ARM_CROSSED"},
}
"""What an example cannot help to break as well."""


def merged(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def test_the_document_of_the_page_is_sound() -> None:
    assert check_document(DOCUMENT).diagnostics == ()


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_example_of_a_code_breaks_its_rule(code: str) -> None:
    (text,) = BLOCK.findall(EXAMPLES[code])
    patch = json.loads(text)
    limits = Limits(**{**_figures(DEFAULT_LIMITS), **patch.pop("$limits", {})})
    document = merged(DOCUMENT, patch)
    found = check_document(document, limits)
    codes = {each.code for each in found.diagnostics}
    if code == "VERSION_TAKEN" or code.startswith("BUDGET_"):
        assert codes == set()
        codes = _compared(document)
    assert code in codes
    assert codes - {code} <= ALSO.get(code, set())


def _figures(limits: Limits) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in Limits.__dataclass_fields__}


def _compared(document: Any) -> set[str]:
    """What is found against the document of the page as the published, and agreed, one."""
    now, before = load_definition(document), load_definition(DOCUMENT)
    found = [*check_budget(budget_of(now), {before.id: budget_of(before).to_json()})]
    if found:
        return {each.code for each in found}
    return {each.code for each in check_version(now, {before.version: definition_digest(before)})}
