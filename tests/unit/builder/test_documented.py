"""Every misuse is explained in the reference, and tested."""

import re
from pathlib import Path
from typing import get_args

from orbit_sdk.handlers.problems import BuildCode

ROOT = Path(__file__).parents[3]


def test_the_reference_explains_exactly_the_codes_that_there_are() -> None:
    page = (ROOT / "docs" / "reference" / "builder.md").read_text()
    explained = re.findall(r"^\| `([A-Z_]+)` \| ", page, re.MULTILINE)
    assert explained == sorted(get_args(BuildCode))


def test_every_code_is_met_in_a_test() -> None:
    tests = [
        *Path(__file__).parent.glob("test_*.py"),
        *(ROOT / "tests" / "unit" / "handlers").glob("test_*.py"),
    ]
    text = "".join(path.read_text() for path in tests)
    assert [code for code in get_args(BuildCode) if f'"{code}"' not in text] == []
