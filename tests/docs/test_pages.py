"""Names, commands, tests and pictures that the pages speak of exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from orbit_sdk.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
OWN = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES = [*(ROOT / name for name in OWN), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]

shown = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@shown
def test_the_commands_of_a_page_exist(page: Path) -> None:
    root: Any = get_command(app)
    known = set(root.list_commands(None))
    named = set(re.findall(r"(?:`|^\$ )orbit ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= known


@shown
def test_the_targets_of_a_page_are_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^\$ )make ([a-z-]+)", page.read_text(), re.MULTILINE)) <= targets


@shown
def test_the_files_that_a_page_links_to_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) + re.findall(r'src="([^"]+)"', text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", OWN)
def test_the_symbols_that_are_named_in_full_exist(name: str) -> None:
    for symbol in re.findall(r"`(orbit_s[a-z]+(?:\.\w+)+)`", (ROOT / name).read_text()):
        module, _, last = symbol.rpartition(".")
        assert hasattr(importlib.import_module(module), last), symbol


def test_the_tests_that_prove_the_guarantees_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "guarantees.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", text))
    written = {
        found
        for path in (ROOT / "tests").rglob("test_*.py")
        for found in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    assert named
    assert named <= written


def test_the_tree_of_folders_names_every_package() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    tree = text[text.index("\norbit_sdk/") :].partition("```")[0]
    sdk, _, server = tree.partition("\norbit_server/")
    for root, part in (("orbit_sdk", sdk), ("orbit_server", server)):
        named = set(re.findall(r"^  (\w+)/", part, re.MULTILINE))
        assert named == {path.parent.name for path in (ROOT / root).glob("*/__init__.py")}
