"""The reference lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

from orbit_sdk.errors import Code
from orbit_sdk.protocol.timeline import EVENT_SHAPES
from orbit_server.api.errors import STATUS
from orbit_server.platform.permissions import PERMISSIONS

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_every_error_code_has_its_section_and_no_other_has() -> None:
    text = (REFERENCE / "errors.md").read_text()
    assert sorted(re.findall(r"^## (\S+)$", text, re.MULTILINE)) == sorted(code.value for code in Code)


def test_the_table_of_codes_gives_their_status() -> None:
    text = (REFERENCE / "errors.md").read_text()
    rows = re.findall(r"^\| ([A-Z_]+) \| (\d+) \|", text, re.MULTILINE)
    assert {name: int(status) for name, status in rows} == {
        code.value: status for code, status in STATUS.items()
    }


def test_the_table_of_events_gives_their_shape() -> None:
    text = (REFERENCE / "http.md").read_text()
    rows = re.findall(r"^\| `(workflow\.[a-z.]+)` \| `(\w+)` \| `(\w+)` \|$", text, re.MULTILINE)
    assert {name: (kind, scope) for name, kind, scope in rows} == {
        name: (shape.aggregate_kind, shape.state_scope) for name, shape in EVENT_SHAPES.items()
    }


def test_every_permission_has_a_row() -> None:
    page = (REFERENCE / "permissions.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z:-]+)`", row)}
    assert named == PERMISSIONS
