"""Python files and modules as people type them: `app.py`, `app.py:name`, `package.module`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["import_target", "split_target", "values_of"]


def split_target(text: str) -> tuple[str, str | None]:
    """What to import, and the name in it that was asked for."""
    head, colon, tail = text.rpartition(":")
    if colon and head and tail.isidentifier():
        return head, tail
    return text, None


def import_target(text: str) -> ModuleType:
    """Import a file by its path or a module by its name. Whatever the module raises comes through.

    Relative to the working folder; the folder of a file is put on the import path, as `python file.py` does.
    """
    if text.endswith(".py") or "/" in text:
        return _import_file(Path(text))
    _put_on_path(Path.cwd())
    return importlib.import_module(text)


def values_of(module: ModuleType, name: str | None) -> Iterator[Any]:
    """The module's values, or the one asked for (a list or a tuple counts as what it holds)."""
    if name is None:
        yield from vars(module).values()
        return
    if not hasattr(module, name):
        raise ImportError(f"{module.__name__} has no {name}")
    value = getattr(module, name)
    if isinstance(value, list | tuple | set | frozenset):
        yield from value
    else:
        yield value


def _import_file(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise ImportError(f"there is no file {path}")
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    _put_on_path(folder)
    name = ".".join(parts)
    known = sys.modules.get(name)
    if known is not None and _file_of(known) != path:
        raise ImportError(f"{path} and {_file_of(known)} are both called {name}: rename one of them")
    importlib.invalidate_caches()
    return importlib.import_module(name)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def _put_on_path(folder: Path) -> None:
    text = str(folder)
    if text not in sys.path:
        sys.path.insert(0, text)
