"""What a picture says: the lines inside a step, and the texts on its exits."""

from __future__ import annotations

from collections.abc import Iterable

from orbit_sdk.check.picture.shapes import Way
from orbit_sdk.check.words import duration_text, ref_text, value_text, values_text
from orbit_sdk.definition.expressions import (
    And,
    ArrayExpr,
    Condition,
    Const,
    Expression,
    In,
    IsNull,
    Not,
    ObjectExpr,
    Or,
    Ref,
    TextExpr,
    operands,
)
from orbit_sdk.definition.nodes import (
    BranchOnNode,
    BranchWhenNode,
    DelayNode,
    FailNode,
    JoinNode,
    MergeNode,
    Node,
    ParallelNode,
    PollNode,
    SucceedNode,
    TaskNode,
    UntilNode,
    WaitNode,
)

LONGEST_DETAIL = 44
LONGEST_LABEL = 44

_SIGNS = {"eq": "=", "ne": "≠", "lt": "<", "le": "≤", "gt": ">", "ge": "≥"}
_WAYS = {"on_failure": Way.CATCH, "on_failed": Way.CATCH, "on_timeout": Way.LATE, "next": Way.NEXT}


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def detail_of(node: Node) -> str:
    """What a step does, in one line."""
    match node:
        case TaskNode():
            return node.title or node.handler
        case WaitNode():
            return node.title or f"{node.signal}, {duration_text(node.timeout_ms)}"
        case PollNode():
            return node.title or f"{node.handler}, every {duration_text(node.every_ms)}"
        case DelayNode():
            return node.title or duration_text(node.delay_ms)
        case UntilNode():
            return node.title or f"until {expression_text(node.until)}"
        case BranchOnNode():
            return node.title or expression_text(node.on)
        case FailNode():
            return node.title or node.error.code
        case SucceedNode() | BranchWhenNode() | MergeNode() | ParallelNode() | JoinNode():
            return node.title or ""


def hint_of(key: str, node: Node) -> str:
    """Everything that a reader may want to know of a step, for its tool tip."""
    return "\n".join(line for line in (f"{node.kind} {key}", node.title or "", *_facts(node)) if line)


def _facts(node: Node) -> Iterable[str]:
    match node:
        case TaskNode():
            yield f"{node.handler} on queue {node.queue}"
            yield f"at most {node.retry.max_attempts} attempts in {duration_text(node.total_timeout_ms)}"
        case PollNode():
            yield f"{node.handler} on queue {node.queue}"
            within = duration_text(node.within_ms)
            yield f"every {duration_text(node.every_ms)}, at most {node.max_rounds} rounds in {within}"
        case WaitNode():
            yield f"signal {node.signal}, match {expression_text(node.match)}"
            yield f"at most {duration_text(node.timeout_ms)}"
        case FailNode():
            yield f"{node.error.code}: {node.error.message}"
        case _:
            return


def way_of(exit_name: str) -> Way:
    """What kind of exit this is."""
    return _WAYS.get(exit_name, Way.CASE)


def exit_text(node: Node, exit_name: str) -> str:
    """What stands on the wire of an exit; nothing on the ordinary way on."""
    match node:
        case TaskNode() if exit_name == "on_failure":
            return "failed"
        case PollNode() if exit_name == "on_failed":
            return values_text(node.state.failed)
        case WaitNode() if exit_name == "on_timeout":
            return f"after {duration_text(node.timeout_ms)}"
        case BranchOnNode() | BranchWhenNode() if exit_name == "otherwise":
            return "otherwise"
        case BranchOnNode():
            return values_text(node.cases[int(exit_name.removeprefix("cases."))].equals)
        case BranchWhenNode():
            return condition_text(node.cases[int(exit_name.removeprefix("cases."))].when)
        case _:
            return ""


def condition_text(condition: Condition) -> str:
    """A condition as a person writes it."""
    match condition:
        case Not(not_=inner):
            return f"not {_inner(inner)}"
        case And(and_=parts):
            return " and ".join(_inner(part) for part in parts)
        case Or(or_=parts):
            return " or ".join(_inner(part) for part in parts)
        case IsNull(is_null=value):
            return f"{expression_text(value)} is null"
        case In(in_=members):
            return f"{expression_text(members.value)} in {values_text(members.among)}"
        case _:
            name, (left, right) = operands(condition)
            if name == "eq" and isinstance(right, Const) and right.const is True:
                return expression_text(left)
            if name == "eq" and isinstance(right, Const) and right.const is False:
                return f"not {expression_text(left)}"
            return f"{expression_text(left)} {_SIGNS[name]} {expression_text(right)}"


def _inner(condition: Condition) -> str:
    text = condition_text(condition)
    return f"({text})" if isinstance(condition, And | Or) else text


def expression_text(expression: Expression) -> str:
    """An expression as a person writes it."""
    match expression:
        case Const(const=value):
            return value_text(value)
        case Ref():
            return ref_text(expression)
        case TextExpr(text=pieces):
            return "".join(f"{{{ref_text(piece)}}}" if isinstance(piece, Ref) else piece for piece in pieces)
        case ObjectExpr(object=fields):
            return "{" + ", ".join(f"{name}: {expression_text(part)}" for name, part in fields.items()) + "}"
        case ArrayExpr(array=items):
            return "[" + ", ".join(expression_text(item) for item in items) + "]"
