"""Pure modules take the time, chance and identity as inputs; they never ask for them.

Import contracts forbid the modules that know the time; the names below would get at it through `datetime`
or through an object that was handed in.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, python_files

PURE_PACKAGES = tuple(
    f"orbit_sdk/{name}"
    for name in ("values", "definition", "protocol", "calendar", "engine", "check", "handlers", "builder")
)
PURE_SERVER_MODULES = frozenset({"lifecycle", "decide"})  # a module or a package of that name
FORBIDDEN_CALLS = frozenset(
    {"now", "today", "utcnow", "random", "urandom", "uuid1", "uuid4", "time_ns", "monotonic"}
)
FORBIDDEN_BUILTINS = frozenset({"open", "print", "input", "hash", "eval", "exec", "__import__"})


def pure_files() -> list[Path]:
    in_server = [
        path for path in python_files("orbit_server") if PURE_SERVER_MODULES & set(path.with_suffix("").parts)
    ]
    return python_files(*PURE_PACKAGES) + in_server


def impurities(tree: ast.AST) -> Iterator[str]:
    """Calls that ask the outside world; defining or reading a field called `now` is fine."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in FORBIDDEN_CALLS:
                yield f"line {node.lineno}: calls .{name}()"
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS | FORBIDDEN_BUILTINS:
                yield f"line {node.lineno}: calls {name}()"
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                yield f"line {node.lineno}: waits"
            case _:
                pass


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_a_pure_module_asks_nothing_of_the_outside_world(path: Path) -> None:
    found = list(impurities(ast.parse((ROOT / path).read_text())))
    if "handlers" in path.parts:  # handlers are functions of their author's, and may be coroutines
        found = [each for each in found if not each.endswith(": waits")]
    assert not found, f"{path}: {found}"


@pytest.mark.parametrize(
    "line",
    [
        "datetime.now()",
        "date.today()",
        "clock.utcnow()",
        "rng.random()",
        "print(1)",
        "async def f(): await g()",
    ],
)
def test_the_purity_test_sees_what_it_forbids(line: str) -> None:
    assert list(impurities(ast.parse(line)))
