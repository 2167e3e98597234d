"""Errors that others raise when they are given a reference: told as the misuse that they are."""

from __future__ import annotations

import re

from pydantic import ValidationError

from orbit_sdk.builder.endless import INSTEAD_OF_LOOPS, turning_in
from orbit_sdk.builder.options import option_problem
from orbit_sdk.builder.refs import Condition, Ref
from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.problems import BuildError, raised_place

__all__ = ["explained"]

_STAND_IN = re.compile(rf"\b({Ref.__name__}|{Condition.__name__})\b")


def explained(trace: Trace, error: BaseException) -> BuildError | None:
    """The misuse behind an error; None when it is the author's own."""
    place = raised_place(error)
    option = option_problem(error)
    if option is not None:
        return trace.refuse("OPTION", *option, place)
    if isinstance(error, ValidationError):
        found = _reference_in(error)
        if found is not None:
            return trace.refuse(
                "CONSTRUCTOR",
                f"{error.title} was made with {found!r} inside: its constructor judges values",
                f"use orbit.build({error.title}, …)",
                place,
            )
    elif isinstance(error, RecursionError):
        return trace.refuse(
            "ENDLESS",
            f"the function does not come to an end{turning_in(error.__traceback__)}",
            INSTEAD_OF_LOOPS,
            place,
        )
    elif isinstance(error, TypeError) and _STAND_IN.search(str(error)):
        return trace.refuse(
            "COMPUTE",
            f"a reference was given to code that needs its value ({error})",
            "compute it in a handler, and pass the reference to that handler",
            place,
        )
    return None


def _reference_in(error: ValidationError) -> Ref | Condition | None:
    for item in error.errors(include_url=False, include_context=False):
        value = item["input"]
        if isinstance(value, Ref | Condition):
            return value
    return None
