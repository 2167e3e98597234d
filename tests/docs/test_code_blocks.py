"""What the README and the documentation show runs.

The Python blocks of a page run in order and share one namespace.
"""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).resolve().parents[2]


def pages() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        path.relative_to(ROOT)
        for path in found
        if "_build" not in path.parts and "```python" in path.read_text()
    ]


@pytest.mark.parametrize("page", pages(), ids=str)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], path=str(ROOT)).parse(ROOT / page)
    examples = list(document.examples())
    assert examples, f"{page} shows Python that was not found"
    source = ["\n"] * (ROOT / page).read_text().count("\n")
    for example in examples:
        lines = str(example.parsed).splitlines(keepends=True)
        first = example.line + example.parsed.line_offset
        source[first : first + len(lines)] = lines
    linecache.cache[str(ROOT / page)] = (0, None, source, str(ROOT / page))  # as of a module: with its source
    for example in examples:
        example.evaluate()
