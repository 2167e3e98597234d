"""The format does not drift: each example keeps the digest that it was published with."""

from __future__ import annotations

import json
from pathlib import Path

from orbit_sdk.definition.models import definition_digest, read_definition

EXAMPLES = Path(__file__).resolve().parents[3] / "schemas" / "examples" / "definition"


def test_every_example_keeps_its_digest() -> None:
    kept = json.loads((EXAMPLES / "digests.json").read_text())
    found = {
        path.stem: definition_digest(read_definition(path.read_bytes()))
        for path in (EXAMPLES / "valid").glob("*.json")
    }
    assert found == kept
