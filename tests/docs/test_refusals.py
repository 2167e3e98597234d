"""Every misuse has a heading and an example; that the examples are refused is held by the examples."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from orbit_sdk.handlers.problems import BuildCode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "what-orbit-refuses.md"


def test_every_code_has_a_heading_and_an_example_that_triggers_it() -> None:
    parts = re.split(r"^### `([A-Z_]+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headings, sections = parts[1::2], parts[2::2]
    assert sorted(headings) == sorted(get_args(BuildCode))
    without = [
        code
        for code, text in zip(headings, sections, strict=True)
        if f'wrong("{code}")' not in text and f'refused("{code}")' not in text
    ]
    assert without == []
