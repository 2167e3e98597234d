"""The tutorials do what they say: each command is run, and says what is printed there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.transcripts import Reader, blocks_of

TUTORIALS = sorted((Path(__file__).resolve().parents[2] / "docs" / "tutorial").glob("*.md"))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_whoever_follows_a_tutorial_sees_what_it_shows(page: Path, tmp_path: Path) -> None:
    assert any(block.language == "console" for block in blocks_of(page))
    folder = tmp_path / "letters"
    folder.mkdir()
    Reader(folder).follow(page)
