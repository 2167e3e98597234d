"""The typed language holds in two type checkers, without a plugin for the language."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent.relative_to(ROOT)
RIGHT = ["jobs_external.py", "vocabulary.py"]
UNSEEN_BY_PYRIGHT = {"misspelt literal"}
"""Wrong lines that only mypy, and always the compiler, refuses."""


def mypy(*files: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def pyright(*files: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--level", "error", *map(str, files)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


CHECKERS = [pytest.param(mypy, id="mypy"), pytest.param(pyright, id="pyright")]
Checker = Callable[..., tuple[int, str]]


@pytest.mark.parametrize("checker", CHECKERS)
def test_right_workflows_have_the_types_that_they_claim(checker: Checker) -> None:
    code, output = checker(*(HERE / file for file in RIGHT))
    assert code == 0, output


@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_lines_are_refused_and_no_others(checker: Checker, tmp_path: Path) -> None:
    bare = re.sub(r"  # pyright: ignore\[[\w, ]+\]", "", (ROOT / HERE / "wrong.py").read_text())
    (tmp_path / "wrong.py").write_text(bare)
    _code, output = checker(tmp_path / "wrong.py")
    found = {int(line) for line in re.findall(r"wrong\.py:(\d+):.*error", output)}
    marked = {
        number: line.partition("# wrong: ")[2].strip()
        for number, line in enumerate(bare.splitlines(), 1)
        if "# wrong: " in line
    }
    unseen = UNSEEN_BY_PYRIGHT if checker is pyright else set[str]()
    assert found == {number for number, what in marked.items() if what not in unseen}, output
