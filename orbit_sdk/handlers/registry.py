"""The handlers of a module or a worker, by name and version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

from orbit_sdk.handlers.declaration import Handler
from orbit_sdk.handlers.older import older_handlers
from orbit_sdk.handlers.problems import BuildError, Problem, function_place

__all__ = ["Registry"]

AnyHandler = Handler[..., Any]


class Registry(Mapping[str, AnyHandler]):
    """Handlers by key (`job.submit@1`), ready to run. Two different ones under one key are refused."""

    def __init__(self, handlers: Iterable[AnyHandler] = ()) -> None:
        self._by_key: dict[str, AnyHandler] = {}
        for one in handlers:
            self.add(one)

    @classmethod
    def of(cls, *sources: ModuleType | AnyHandler | Iterable[AnyHandler]) -> Registry:
        """All handlers of modules (what they import counts too), iterables and single handlers.

        Contracts without a body are left out of modules and iterables: they are there to be called.
        """
        found = cls()
        for source in sources:
            if isinstance(source, Handler):
                found.add(source)
            else:
                for value in _values_of(source):
                    if isinstance(value, Handler) and value.is_implemented:
                        found.add(value)
        return found

    def add(self, handler: AnyHandler) -> None:
        """Add one, and the older versions that it accepts. Adding the same object again changes nothing.

        Raises BuildError.
        """
        if handler.key not in self._by_key:
            handler.check_runnable()
            for older in older_handlers(handler):
                self.add(older)
        known = self._by_key.setdefault(handler.key, handler)
        if known is not handler:
            raise BuildError(
                [
                    Problem(
                        "HANDLER_TWICE",
                        f"two handlers are called {handler.key}: {known.__module__}.{known.__name__} "
                        f"and {handler.__module__}.{handler.__name__}",
                        "give one of them another name or version",
                        function_place(handler.function),
                    )
                ]
            )

    def __getitem__(self, key: str) -> AnyHandler:
        return self._by_key[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def queues(self) -> frozenset[str]:
        """Every queue that some handler lives on."""
        return frozenset(one.queue for one in self._by_key.values())


def _values_of(source: ModuleType | Iterable[object]) -> Iterable[object]:
    if isinstance(source, ModuleType):
        return vars(source).values()
    return source
