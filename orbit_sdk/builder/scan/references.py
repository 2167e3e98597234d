"""Which expressions of a workflow function stand for references: only what is certain counts.

A name counts when everything that is ever assigned to it is a reference. What a helper function of another
place returns is not followed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType

from orbit_sdk.builder.scan.names import Bound, Names, Uses, own_nodes, parameters_of
from orbit_sdk.builder.scan.sources import FunctionNode
from orbit_sdk.handlers.declaration import Handler

__all__ = ["Kind", "References", "Words"]

_UNKNOWN = object()
_ARM_ARGUMENTS = frozenset({"on_failure", "on_failed", "state", "some"})
"""Arguments that are functions of a reference."""


class Kind(Enum):
    """What an expression stands for."""

    REF = "a reference, or a condition"
    REFS = "a tuple of references"
    STEP = "a handler with options, not called yet"


@dataclass(frozen=True, slots=True)
class Words:
    """The language's own functions, by what a call of them gives."""

    refs: tuple[object, ...]
    tuples: tuple[object, ...]
    silent: tuple[object, ...]
    """They declare something and give nothing."""
    some: tuple[object, ...]
    """Their second argument is a function of a reference."""
    signal: type
    signal_calls: frozenset[str] = frozenset({"wait", "meta"})


@dataclass(eq=False, slots=True)
class References:
    """Answers for one workflow function. `outside` holds what its free and global names mean now."""

    words: Words
    root: FunctionNode
    outside: Mapping[str, object]
    uses: Uses
    _known: dict[tuple[int, int], Kind | None] = field(default_factory=dict)
    _asked: set[tuple[int, int]] = field(default_factory=set)
    _entered: set[int] = field(default_factory=set)

    def is_ref(self, expr: ast.AST, names: Names) -> bool:
        """Whether the expression certainly gives a reference or a condition."""
        return self.kind(expr, names) is Kind.REF

    def kind(self, expr: ast.AST, names: Names) -> Kind | None:
        """What the expression stands for; None when that is not certain."""
        key = (id(expr), id(names))
        if key in self._known:
            return self._known[key]
        if key in self._asked:  # a name made of itself: what else it is made of decides
            return Kind.REF
        self._asked.add(key)
        try:
            found = self._kind(expr, names)
        finally:
            self._asked.discard(key)
        self._known[key] = found
        return found

    def meaning(self, expr: ast.AST, names: Names) -> object:
        """The object that a name or an attribute of a module means; `UNKNOWN` when that is not certain."""
        if isinstance(expr, ast.Name) and names.home(expr.id) is None:
            return self.outside.get(expr.id, getattr(builtins, expr.id, _UNKNOWN))
        if isinstance(expr, ast.Attribute):
            base = self.meaning(expr.value, names)
            if isinstance(base, ModuleType):
                return getattr(base, expr.attr, _UNKNOWN)
        return _UNKNOWN

    def declares(self, call: ast.Call, names: Names) -> bool:
        """Whether the call declares something: a step, or another word of the language."""
        if self.kind(call, names) in (Kind.REF, Kind.REFS):
            return True
        if _is_one(self.meaning(call.func, names), self.words.silent):
            return True
        function = self._local(call.func, names)
        if function is None or id(function) in self._entered:
            return False
        self._entered.add(id(function))
        inside = self._of(function, names)
        calls = [node for node in own_nodes(function) if isinstance(node, ast.Call)]
        found = any(self.declares(node, inside) for node in calls)
        self._entered.discard(id(function))
        return found

    def _kind(self, expr: ast.AST, names: Names) -> Kind | None:
        match expr:
            case ast.Name():
                return self._name(expr.id, names)
            case ast.Attribute():
                return Kind.REF if self.is_ref(expr.value, names) else None
            case ast.Subscript():
                base = self.kind(expr.value, names)
                return Kind.REF if base in (Kind.REF, Kind.REFS) else None
            case ast.NamedExpr():
                return self.kind(expr.value, names)
            case ast.IfExp():
                return self._same([expr.body, expr.orelse], names)
            case ast.Compare():
                return self._compared(expr, names)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                either = self.is_ref(expr.left, names) or self.is_ref(expr.right, names)
                return Kind.REF if either else None
            case ast.Call():
                return self._call(expr, names)
            case ast.Tuple() | ast.List():
                refs = bool(expr.elts) and all(self.is_ref(one, names) for one in expr.elts)
                return Kind.REFS if refs else None
            case _:
                return None

    def _compared(self, expr: ast.Compare, names: Names) -> Kind | None:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in expr.ops):
            return None
        either = any(self.is_ref(one, names) for one in (expr.left, *expr.comparators))
        return Kind.REF if either else None

    def _same(self, exprs: Iterable[ast.expr], names: Names) -> Kind | None:
        kinds = {self.kind(one, names) for one in exprs}
        return kinds.pop() if len(kinds) == 1 else None

    def _call(self, call: ast.Call, names: Names) -> Kind | None:
        meaning = self.meaning(call.func, names)
        if isinstance(meaning, Handler) or _is_one(meaning, self.words.refs):
            return Kind.REF
        if _is_one(meaning, self.words.tuples):
            return Kind.REFS
        if isinstance(call.func, ast.Attribute):
            owner = self.meaning(call.func.value, names)
            if isinstance(owner, Handler):
                return Kind.STEP if call.func.attr == "options" else None
            if isinstance(owner, self.words.signal):
                return Kind.REF if call.func.attr in self.words.signal_calls else None
        if self.kind(call.func, names) is Kind.STEP:
            return Kind.REF
        function = self._local(call.func, names)
        return self._result(function, names) if function is not None else None

    def _local(self, expr: ast.AST, names: Names) -> FunctionNode | None:
        """The function in this workflow that a name means, when it means nothing else."""
        if not isinstance(expr, ast.Name):
            return None
        home = names.home(expr.id)
        bounds = home.bound[expr.id] if home is not None else []
        return bounds[0].function if len(bounds) == 1 else None

    def _of(self, function: FunctionNode, names: Names) -> Names:
        top = names
        while top.parent is not None:
            top = top.parent
        return next(one for one in top.everywhere() if one.node is function)

    def _result(self, function: FunctionNode, names: Names) -> Kind | None:
        inside = self._of(function, names)
        if isinstance(function, ast.Lambda):
            return self.kind(function.body, inside)
        returned = [node.value for node in own_nodes(function) if isinstance(node, ast.Return)]
        if not returned or any(value is None for value in returned):
            return None
        return self._same([value for value in returned if value is not None], inside)

    def _name(self, name: str, names: Names) -> Kind | None:
        home = names.home(name)
        if home is None:
            return None
        kinds = {self._bound(name, bound, home) for bound in home.bound[name]}
        return kinds.pop() if len(kinds) == 1 else None

    def _bound(self, name: str, bound: Bound, home: Names) -> Kind | None:
        if bound.parameter is not None:
            return Kind.REF if self._is_ref_parameter(name, bound.parameter, home) else None
        if bound.value is None:
            return None
        if bound.part is None:
            return self.kind(bound.value, home)
        if bound.part >= 0 and isinstance(bound.value, ast.Tuple | ast.List):
            parts = bound.value.elts
            return self.kind(parts[bound.part], home) if bound.part < len(parts) else None
        return Kind.REF if self.kind(bound.value, home) is Kind.REFS else None

    def _is_ref_parameter(self, name: str, function: FunctionNode, home: Names) -> bool:
        if function is self.root:
            return True
        place = [one.arg for one in parameters_of(function)].index(name)
        found = list(self._given(function, name, place, home))
        return bool(found) and all(found)

    def _given(self, function: FunctionNode, name: str, place: int, home: Names) -> Iterable[bool]:
        """For each use of the function: whether a reference is given for the parameter."""
        outer = home.parent
        if outer is None:
            return
        for names, node, parent in self.uses.get("", []):
            if node is function and isinstance(parent, ast.Call | ast.keyword):
                yield self._is_arm_argument(node, parent, names)
        called = _named(function, outer)
        for names, node, parent in self.uses.get(called, []) if called is not None else []:
            if self._local(node, names) is not function:
                continue
            if isinstance(parent, ast.Call) and parent.func is node:
                given = _argument(parent, name, place)
                yield given is not None and self.is_ref(given, names)
            else:
                yield self._is_arm_argument(node, parent, names)

    def _is_arm_argument(self, node: ast.AST, parent: ast.AST, names: Names) -> bool:
        """Whether a function stands where the language calls it with a reference."""
        if isinstance(parent, ast.keyword):
            return parent.arg in _ARM_ARGUMENTS
        if not isinstance(parent, ast.Call) or not _is_one(self.meaning(parent.func, names), self.words.some):
            return False
        return len(parent.args) > 1 and parent.args[1] is node


def _named(function: FunctionNode, outer: Names) -> str | None:
    """The name by which a function is known where it is made."""
    for name, bounds in outer.bound.items():
        if any(bound.function is function for bound in bounds):
            return name
    return None


def _argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    plain = not any(isinstance(one, ast.Starred) for one in call.args)
    return call.args[place] if plain and place < len(call.args) else None


def _is_one(meaning: object, among: tuple[object, ...]) -> bool:
    return any(meaning is one for one in among)
