"""What a package offers is a list: complete, sorted and true."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, python_files


def packages_with_a_list() -> list[str]:
    return [
        ".".join(path.parent.parts)
        for path in python_files()
        if path.name == "__init__.py" and "__all__" in (ROOT / path).read_text()
    ]


def sort_key(name: str) -> tuple[int, str]:
    """Constants, then classes and types, then functions: the order that ruff writes."""
    if name.isupper():
        return 0, name
    return (1, name) if name[0].isupper() else (2, name)


@pytest.mark.parametrize("package", packages_with_a_list())
def test_public_names_are_sorted_and_listed_once(package: str) -> None:
    names = list(importlib.import_module(package).__all__)
    assert names == sorted(set(names), key=sort_key)


@pytest.mark.parametrize("package", packages_with_a_list())
def test_every_public_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", packages_with_a_list())
def test_what_a_package_re_exports_is_listed(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse((ROOT / Path(*package.split(".")) / "__init__.py").read_text())
    taken = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package)
        for alias in node.names
    }
    assert {name for name in taken if not name.startswith("_")} <= set(module.__all__)


def test_both_packages_are_typed() -> None:
    assert (ROOT / "orbit_sdk" / "py.typed").exists()
    assert (ROOT / "orbit_server" / "py.typed").exists()
