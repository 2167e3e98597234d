"""Files of the repository speak of Orbit only, and stay readable."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, python_files, text_files

# Put together here so that this file does not hold them itself. Traces of the machine a file was written
# on, and of where its packages came from, mean nothing to a reader.
FORBIDDEN = re.compile(
    "|".join(
        (
            "/" + r"work/(main|shared)\b",
            "/" + r"tmp/orbit/",
            "/" + r"home/[a-z]+/",
            "/" + r"Users/[a-z]+/",
            "--" + r"(extra-)?index-url\s+\S",
            "--" + r"find-links\s+\S",
            "--" + r"trusted-host\s+\S",
            "files.python" + "hosted",
            r"\b" + "TO" + r"DO\b",
            r"\b" + "FIX" + r"ME\b",
            r"\b" + "XX" + r"X\b",
        )
    )
)
MODULE_LINES = 400
FUNCTION_LINES = 60
# One list of declarations, without logic: splitting it would only hide half of it.
LONG_LISTS = frozenset({Path("orbit_server/storage/tables.py")})


def test_no_file_holds_traces_of_the_machine_it_was_written_on() -> None:
    found = []
    for path in text_files():
        try:
            text = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path}: {match.group()!r}" for match in FORBIDDEN.finditer(text)]
    assert not found, "\n".join(found)


def test_requirements_are_pinned_and_hashed() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n|^\n", "", path.read_text()).strip())
        for entry in entries:
            assert re.match(r"[A-Za-z0-9._-]+==\S+", entry), f"{path.name}: {entry[:60]}"
            assert "--hash=sha256:" in entry, f"{path.name}: {entry[:60]}"


def test_the_version_is_told_once() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("path", python_files(), ids=str)
def test_a_module_opens_with_its_rule(path: Path) -> None:
    assert ast.get_docstring(ast.parse((ROOT / path).read_text())), f"{path} has no docstring"


@pytest.mark.parametrize("path", python_files(), ids=str)
def test_modules_and_functions_fit_the_reader(path: Path) -> None:
    text = (ROOT / path).read_text()
    if "Do not edit" in text[:300]:  # generated
        return
    assert path in LONG_LISTS or text.count("\n") <= MODULE_LINES, f"{path} has {text.count(chr(10))} lines"
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]
    assert not long, f"{path}: {long}"


def test_generated_files_are_current() -> None:
    from tools.generate import outdated

    assert sorted(outdated()) == []
