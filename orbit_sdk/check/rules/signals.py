"""No signal is taken by a wait that it was not meant for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from orbit_sdk.check.diagnostics import Path, Severity
from orbit_sdk.check.fits import Fit
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.check.view import View
from orbit_sdk.definition.expressions import Const, Expression, Ref, TextExpr
from orbit_sdk.definition.nodes import PollNode, WaitNode


@rule(
    "SIGNAL_REUSED",
    remedy='Give them different signals or keys, or say "early": "KEEP" where a wait may take a leftover.',
)
def signal_reused(view: View) -> Iterator[Finding]:
    """Two WAITs that can both be met by one run wait for the same signal with keys that may be equal."""
    told: set[str] = set()
    for first, second, in_parallel in _pairs(view, _waits(view)):
        one, other = view.nodes[first], view.nodes[second]
        if second in told or not isinstance(one, WaitNode) or not isinstance(other, WaitNode):
            continue
        kept = other.early == "KEEP" and (one.early == "KEEP" or not in_parallel)
        if not kept and _may_be_equal(view, (first, one.match), (second, other.match)):
            told.add(second)
            how = "runs beside" if in_parallel else "comes after"
            yield Finding(
                ("nodes", second, "signal"),
                f"'{second}' {how} '{first}', and both wait for {one.signal} with keys that may be equal.",
                related=((("nodes", first, "signal"), "the other wait"),),
            )


@rule(
    "RECEIPT_REUSED",
    severity=Severity.WARNING,
    remedy="Give it its own signal or key, so that each receipt can serve one step only.",
)
def receipt_reused(view: View) -> Iterator[Finding]:
    """A POLL's final signal has the same name and key as another wait of the same run."""
    waits = _waits(view)
    told: set[str] = set()
    for first, second, _ in _pairs(view, waits):
        (name, match), (_, other) = waits[first], waits[second]
        polls = [key for key in (second, first) if isinstance(view.nodes[key], PollNode)]
        if polls and match == other and polls[0] not in told:
            told.add(polls[0])
            partner = first if polls[0] == second else second
            yield Finding(
                _signal_path(view, polls[0]),
                f"'{polls[0]}' and '{partner}' both take {name} with the same key.",
                related=((_signal_path(view, partner), "takes it too"),),
            )


def _signal_path(view: View, key: str) -> Path:
    return ("nodes", key, "final_signal" if isinstance(view.nodes[key], PollNode) else "signal")


def _waits(view: View) -> dict[str, tuple[str, Expression]]:
    """What each step that takes a signal takes: the signal and the key."""
    found: dict[str, tuple[str, Expression]] = {}
    for key, node in view.nodes.items():
        if isinstance(node, WaitNode):
            found[key] = (node.signal, node.match)
        elif isinstance(node, PollNode) and node.final_signal is not None:
            found[key] = (node.final_signal.signal, node.final_signal.match)
    return found


def _pairs(view: View, waits: dict[str, tuple[str, Expression]]) -> Iterator[tuple[str, str, bool]]:
    """Steps that take one signal and can meet in one run: (earlier, later, False), or (one, other, True) in
    different arms of a PARALLEL.
    """
    by_signal: dict[str, list[str]] = {}
    for key in view.graph.order:
        if key in waits:
            by_signal.setdefault(waits[key][0], []).append(key)
    for keys in by_signal.values():
        for first, second in combinations(keys, 2):
            if view.graph.leads(first, second):
                yield first, second, False
            elif _beside(view, first, second):
                yield min(first, second), max(first, second), True


def _beside(view: View, first: str, second: str) -> bool:
    for (one, arm), (other, other_arm) in zip(view.regions.of[first], view.regions.of[second], strict=False):
        if one != other:
            return False
        if arm != other_arm:
            return True
    return False


def _may_be_equal(view: View, one: tuple[str, Expression], other: tuple[str, Expression]) -> bool:
    """Whether two keys may be equal: not when their types are apart, or their fixed beginnings or ends."""
    at, _ = view.known
    (key, match), (other_key, other_match) = one, other
    head, tail = _fixed(match)
    other_head, other_tail = _fixed(other_match)
    if not (head.startswith(other_head) or other_head.startswith(head)):
        return False
    if not (tail.endswith(other_tail) or other_tail.endswith(tail)):
        return False
    left, right = view.typer.of(match, at[key]), view.typer.of(other_match, at[other_key])
    return view.fitter.fit(left, right) is not Fit.NEVER


def _fixed(key: Expression) -> tuple[str, str]:
    """The text that a key is certain to begin with, and the one it is certain to end with."""
    match key:
        case Const(const=str() as text):
            return text, text
        case TextExpr(text=pieces):
            first, last = pieces[0], pieces[-1]
            return ("" if isinstance(first, Ref) else first), ("" if isinstance(last, Ref) else last)
        case _:
            return "", ""


RULES = (signal_reused, receipt_reused)
