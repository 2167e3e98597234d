"""`orbit init` makes a project that is sound, tested and ready to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parents[3]


def in_folder(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_project_is_sound_and_its_own_test_passes(folder: Path, orbit: Run) -> None:
    result = orbit("init", "My Shop")
    assert result.exit_code == 0, result.output
    assert "orbit dev app.py --reload" in result.stdout
    made = folder / "My Shop"
    assert sorted(path.name for path in made.iterdir()) == [
        ".gitignore",
        "README.md",
        "app.py",
        "test_app.py",
    ]
    assert not [path.name for path in made.iterdir() if "{{" in path.read_text()]
    check = in_folder(made, "-m", "orbit_sdk.cli", "check", "app.py", "--json")
    assert check.returncode == 0, check.stdout + check.stderr
    found = json.loads(check.stdout)["workflows"]
    assert [(one["id"], one["findings"]) for one in found] == [("my_shop.order", [])]
    tests = in_folder(made, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "3 passed" in tests.stdout


def test_what_is_there_is_never_changed(folder: Path, orbit: Run) -> None:
    (folder / "README.md").write_text("mine")
    result = orbit("init", ".")
    assert result.exit_code == 1
    assert "README.md already" in result.output
    assert [path.name for path in folder.iterdir()] == ["README.md"]


def test_a_started_folder_keeps_its_ignores(folder: Path, orbit: Run) -> None:
    (folder / "shop").mkdir()
    (folder / "shop" / ".gitignore").write_text("mine\n")
    data = json.loads(orbit("init", "shop", "--json").stdout)
    assert data == {
        "folder": "shop",
        "files": ["app.py", "test_app.py", "README.md"],
        "workflow": "shop.order",
    }
    assert (folder / "shop" / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["123", "---", "é"])
def test_a_folder_that_cannot_name_a_workflow_is_refused(folder: Path, orbit: Run, name: str) -> None:
    result = orbit("init", "--", name)
    assert result.exit_code == 1
    assert "cannot name a workflow" in result.output
    assert list(folder.iterdir()) == []
