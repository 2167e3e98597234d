"""Parallel arms nest: what opens an arm closes it, and nothing crosses its border.

These rules read regions, so they run only on graphs that have an order.
"""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.graph import Edge
from orbit_sdk.check.regions import Region
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.definition.nodes import SucceedNode


@rule(
    "ARM_EMPTY",
    remedy="Put a step into the arm or remove the arm.",
)
def arm_empty(view: View) -> Iterator[Finding]:
    """An arm of a PARALLEL leads straight to the JOIN and holds no step."""
    for key, node in view.parallels.items():
        for arm, entry in node.arms.items():
            if entry == node.join:
                yield Finding(("nodes", key, "arms", arm), f"Arm '{arm}' of PARALLEL '{key}' holds no step.")


@rule(
    "JOIN_ALONE",
    remedy="Name it as the `join` of the PARALLEL whose arms it waits for, or remove it.",
)
def join_alone(view: View) -> Iterator[Finding]:
    """A JOIN is named by no PARALLEL."""
    for key, kind in view.graph.kinds.items():
        if kind == "JOIN" and key not in view.graph.parallels:
            yield Finding(("nodes", key), f"JOIN '{key}' belongs to no PARALLEL.")


@rule(
    "JOIN_SHARED",
    remedy="Give each PARALLEL its own JOIN.",
)
def join_shared(view: View) -> Iterator[Finding]:
    """Two PARALLELs name the same JOIN."""
    for join, parallels in view.graph.parallels.items():
        if len(parallels) > 1:
            named = ", ".join(f"'{key}'" for key in parallels)
            yield Finding(
                ("nodes", join),
                f"JOIN '{join}' is the join of {named}.",
                related=tuple((("nodes", key, "join"), "names this JOIN") for key in parallels),
            )


@rule(
    "ARMS_OVERLAP",
    remedy="Give each arm its own steps; arms meet only at their JOIN.",
)
def arms_overlap(view: View) -> Iterator[Finding]:
    """A step can be reached from two arms of one PARALLEL."""
    for clash in view.regions.clashes:
        if clash.is_overlap:
            one, other = _spell(clash.first_region), _spell(clash.second_region)
            yield Finding(
                ("nodes", clash.node),
                f"'{clash.node}' is reached from {one} ('{clash.first.source}') "
                f"and from {other} ('{clash.second.source}').",
                related=_edges(clash.first, clash.second),
            )


@rule(
    "ARM_CROSSED",
    remedy="Enter an arm only through its PARALLEL and leave it only through its JOIN.",
)
def arm_crossed(view: View) -> Iterator[Finding]:
    """A way leads into a parallel arm from outside, or out of one past its JOIN."""
    for clash in view.regions.clashes:
        if not clash.is_overlap:
            one, other = _spell(clash.first_region), _spell(clash.second_region)
            yield Finding(
                ("nodes", clash.node),
                f"'{clash.node}' is reached from '{clash.first.source}' in {one} "
                f"and from '{clash.second.source}' in {other}.",
                related=_edges(clash.first, clash.second),
            )


@rule(
    "JOIN_FOREIGN",
    remedy="Lead the step to the JOIN of the innermost PARALLEL it lies in, or past the JOIN.",
)
def join_foreign(view: View) -> Iterator[Finding]:
    """A way leads to a JOIN from outside the arms of its own PARALLEL."""
    for wrong in view.regions.wrong_joins:
        edge = wrong.edge
        owners = view.graph.parallels.get(edge.target, ())
        if len(owners) != 1:
            continue
        yield Finding(
            edge.path,
            f"'{edge.source}' leads to JOIN '{edge.target}' from {_spell(wrong.region)}, "
            f"but that JOIN closes the arms of '{owners[0]}'.",
            related=((("nodes", owners[0]), "the PARALLEL of this JOIN"),),
        )


@rule(
    "ARM_NEVER_JOINS",
    remedy="Lead at least one way through the arm to the JOIN of its PARALLEL.",
)
def arm_never_joins(view: View) -> Iterator[Finding]:
    """No way through an arm leads to the JOIN."""
    told = _arms_at_fault(view)
    for key, node in view.parallels.items():
        for arm, entry in node.arms.items():
            if entry != node.join and (key, arm) not in view.regions.joined | told:
                yield Finding(
                    ("nodes", key, "arms", arm),
                    f"Arm '{arm}' of PARALLEL '{key}', which starts at '{entry}', "
                    f"never reaches JOIN '{node.join}'.",
                )


def _arms_at_fault(view: View) -> frozenset[tuple[str, str]]:
    """Arms of which it is already told that they lead, or are met, where they should not be."""
    clashes, wrong = view.regions.clashes, view.regions.wrong_joins
    regions = (*(clash.first_region for clash in clashes), *(clash.second_region for clash in clashes))
    return frozenset(arm for region in (*regions, *(each.region for each in wrong)) for arm in region)


@rule(
    "END_IN_ARM",
    remedy="Lead the arm to its JOIN and end after it; only an END that fails may stand in an arm.",
)
def end_in_arm(view: View) -> Iterator[Finding]:
    """An END that succeeds lies inside a parallel arm."""
    for key, node in view.nodes.items():
        region = view.regions.of.get(key)
        if isinstance(node, SucceedNode) and region:
            yield Finding(("nodes", key), f"END '{key}' succeeds inside {_spell(region)}.")


def _spell(region: Region) -> str:
    """A region in words, the innermost arm named."""
    if not region:
        return "the main line"
    parallel, arm = region[-1]
    return f"arm '{arm}' of '{parallel}'"


def _edges(*edges: Edge) -> tuple[tuple[tuple[str | int, ...], str], ...]:
    return tuple((edge.path, f"leads here from '{edge.source}'") for edge in edges)


RULES = (
    arm_empty,
    join_alone,
    join_shared,
    arms_overlap,
    arm_crossed,
    join_foreign,
    arm_never_joins,
    end_in_arm,
)
