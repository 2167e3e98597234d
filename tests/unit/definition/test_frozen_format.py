"""`schema_version` 1 is frozen with the first release: from then on its schema keeps its digest.

The switch is the change log: as soon as a version stands there with a date instead of "(unreleased)", the
digest below must be that of the schema. On the day of the first release, write it down as the failure says.

**The day it must change.** What was published must be readable for ever, so never write a new digest here
for a change of the format. Instead:

1. Give the changed format the next `schema_version`, with models of its own and its own generated schema
   (`schemas/definition.v2.schema.json`), and a row for it in `FROZEN`.
2. Keep the models, the checks and the engine's reading of version 1, with its examples and their digests.
3. Name the new version in CHANGELOG.md and in docs/reference/definition.md.

Only what changes neither which documents are accepted nor what they mean may write a new digest: a
description in the schema, another order of its keys. Say so in the commit.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FROZEN: dict[str, str | None] = {"definition.v1.schema.json": None}


def digest_of(name: str) -> str:
    """Of the content: how the file is indented means nothing."""
    schema = json.loads((ROOT / "schemas" / name).read_text("utf-8"))
    return hashlib.sha256(json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def is_released() -> bool:
    headings = re.findall(r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings, "the change log names no version"
    return any(state != "unreleased" for _, state in headings)


def test_the_format_is_frozen_from_the_first_release_on() -> None:
    for name, frozen in FROZEN.items():
        found = digest_of(name)
        if is_released():
            assert frozen is not None, f"the first release freezes {name}: write {found!r} into FROZEN"
            assert found == frozen, f"{name} has changed: read what this module says about that day"
        else:
            assert frozen is None, f"nothing is released, so {name} cannot be frozen yet"
