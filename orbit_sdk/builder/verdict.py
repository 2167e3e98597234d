"""The offline check at the end of every compile: the same code that guards publication."""

from __future__ import annotations

from collections.abc import Mapping

from orbit_sdk.check import check_definition
from orbit_sdk.check.diagnostics import Diagnostic, Place
from orbit_sdk.definition.models import Definition
from orbit_sdk.handlers.problems import BuildError, Problem

__all__ = ["judge"]


def judge(definition: Definition, side: Mapping[str, Place]) -> tuple[Diagnostic, ...]:
    """The warnings of the check. Raises BuildError with its errors."""
    found = tuple(check_definition(definition, side=side))
    errors = [one for one in found if one.is_error]
    if errors:
        raise BuildError([Problem(one.code, one.message, one.help, one.place) for one in errors])
    return found
