"""A contract of our own for import-linter (see `[tool.importlinter]` in pyproject.toml)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grimp
from importlinter import ContractCheck
from importlinter.contracts.protected import ProtectedContract


class KeptTo(ProtectedContract):
    """Some modules may be imported directly only by the listed ones, now or once somebody imports them.

    The contract of import-linter that says so fails while nobody imports the protected module at all;
    this one is kept in that case, so it can be written down before the first import.
    """

    type_name = "kept_to"

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Check the contract against `graph`."""
        fields: Any = self  # import-linter replaces its field descriptors by plain values
        fields.protected_modules = list(self._present(graph, fields.protected_modules))
        fields.allowed_importers = list(self._present(graph, fields.allowed_importers))
        return super().check(graph, verbose)

    @staticmethod
    def _present(graph: grimp.ImportGraph, expressions: Iterable[Any]) -> Iterable[Any]:
        return (
            each for each in expressions if each.has_wildcard_expression() or each.expression in graph.modules
        )
