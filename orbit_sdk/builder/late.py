"""Functions made in a loop that all see its last item: Python binds a name when it is used, not when made."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from orbit_sdk.builder.scan.loops import loop_names
from orbit_sdk.builder.trace import Trace
from orbit_sdk.handlers.problems import function_place

__all__ = ["refuse_late_binding"]


def refuse_late_binding(trace: Trace, arms: Sequence[Any], what: str) -> None:
    """Refuse arms that one `lambda` in a loop made, and that share the loop's variable."""
    seen: dict[tuple[object, ...], FunctionType] = {}
    for arm in arms:
        if not isinstance(arm, FunctionType):
            continue
        shared = (arm.__code__, tuple(id(cell) for cell in arm.__closure__ or ()), id(arm.__defaults__))
        first = seen.setdefault(shared, arm)
        if first is arm:
            continue
        names = loop_names(arm.__code__)
        if names:
            listed = ", ".join(sorted(names))
            raise trace.refuse(
                "LATE_BINDING",
                f"{what} is given functions made in a loop, and all of them see its last {listed}",
                "use orbit.parallel_each(constants, lambda item: …), or bind it: "
                f"lambda {listed}={listed}: …",
                function_place(arm),
            )
