"""What `orbit dev --reload` notices, and what it makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orbit_sdk.cli.dev.reload import Change, Files, check_again, say
from tests.unit.cli.apps import MISSPELT, PAYMENT

ROOT = Path(__file__).parents[3]


def test_a_change_is_told_once_when_it_stands_still(folder: Path) -> None:
    app = folder / "app.py"
    app.write_text("a = 1\n")
    files = Files.of(["app.py"])
    assert files.changed() == []
    app.write_text("a = 12\n")
    assert files.changed() == []
    app.write_text("a = 123\n")
    assert files.changed() == []
    assert files.changed() == [app]
    assert files.changed() == []


def test_new_and_removed_files_are_changes_and_hidden_ones_are_not(folder: Path) -> None:
    (folder / "old.py").write_text("")
    files = Files.of([str(folder)])
    (folder / "old.py").unlink()
    (folder / "new.json").write_text("{}")
    (folder / "note.txt").write_text("")
    for hidden in (".venv", "__pycache__"):
        (folder / hidden).mkdir()
        (folder / hidden / "x.py").write_text("")
    files.changed()
    assert files.changed() == [folder / "new.json", folder / "old.py"]


def test_a_module_is_watched_in_its_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = folder / "shop_of_tests"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    assert Files.of(["shop_of_tests.handlers:ALL"]).roots == (package,)
    assert Files.of(["no_such_module_here"]).roots == ()


def test_what_is_sound_is_taken_and_what_is_not_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (folder / "app.py").write_text(PAYMENT)
    assert check_again(["app.py"], "", "", publish=False).ok
    (folder / "app.py").write_text(MISSPELT)
    change = check_again(["app.py"], "", "", publish=False)
    assert not change.ok
    assert change.said[0].startswith("app.py:") or f"{folder}{os.sep}app.py:" in change.said[0]
    assert "stay as they were" in change.said[-1]
    change = check_again(["app.py"], "http://127.0.0.1:1", "t", publish=True)
    assert not change.ok


def test_what_changed_is_said_in_few_words() -> None:
    change = Change(True, ("orders version 1 is published",), {})
    names = [Path(f"{name}.py") for name in "abcd"]
    assert list(say(change, names)) == [
        "a.py, b.py, c.py and more changed",
        "  orders version 1 is published",
    ]
