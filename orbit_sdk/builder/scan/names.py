"""Where the names of a function, and of the functions in it, get their values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from orbit_sdk.builder.scan.sources import FunctionNode

__all__ = ["Bound", "Names", "Uses", "names_of", "own_nodes", "parameters_of", "uses_of"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Bound:
    """One way a name gets a value.

    `value` is the expression, None when nothing is known of it; `part` says which item of it is taken (-1:
    some item, as in a loop); `parameter` and `function` are set when it is a parameter, or a function.
    """

    value: ast.expr | None = None
    part: int | None = None
    parameter: FunctionNode | None = None
    function: FunctionNode | None = None


@dataclass(eq=False, slots=True)
class Names:
    """The names of one function (comprehensions in it count to it)."""

    node: FunctionNode
    parent: Names | None
    bound: dict[str, list[Bound]] = field(default_factory=dict)
    inner: list[Names] = field(default_factory=list)

    def home(self, name: str) -> Names | None:
        """The function whose own name it is; None for names of the module."""
        found: Names | None = self
        while found is not None and name not in found.bound:
            found = found.parent
        return found

    def everywhere(self) -> Iterator[Names]:
        """This function and all in it."""
        yield self
        for one in self.inner:
            yield from one.everywhere()


def parameters_of(node: FunctionNode) -> list[ast.arg]:
    """All parameters by name, in order."""
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def own_nodes(node: FunctionNode) -> Iterator[ast.AST]:
    """Every node of the function's body, without those of the functions in it (they themselves count)."""
    waiting: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while waiting:
        one = waiting.pop()
        yield one
        if not isinstance(one, _FUNCTIONS):
            waiting.extend(ast.iter_child_nodes(one))
        else:
            waiting.extend(one.args.defaults)
            waiting.extend(default for default in one.args.kw_defaults if default is not None)


def names_of(node: FunctionNode, parent: Names | None = None) -> Names:
    """The names of a function and, inside it, of every function in it."""
    names = Names(node, parent)
    for parameter in parameters_of(node):
        names.bound[parameter.arg] = [Bound(parameter=node)]
    for extra in (node.args.vararg, node.args.kwarg):
        if extra is not None:
            names.bound[extra.arg] = [Bound()]
    elsewhere: set[str] = set()
    for one in own_nodes(node):
        if isinstance(one, ast.Global | ast.Nonlocal):
            elsewhere.update(one.names)
        _bind(names, one)
    for name in elsewhere:
        for bound in names.bound.pop(name, []):
            home = parent.home(name) if parent is not None else None
            if home is not None:
                home.bound[name].append(bound)
    for one in own_nodes(node):
        if isinstance(one, _FUNCTIONS):
            names.inner.append(names_of(one, names))
    return names


def _bind(names: Names, node: ast.AST) -> None:
    """What a node assigns, if it assigns anything."""
    for target, bound in _assigned(node):
        _target(names, target, bound)
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _add(names, node.name, Bound(function=node))
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                _add(names, (alias.asname or alias.name).partition(".")[0], Bound())
        case ast.ClassDef(name=name):
            _add(names, name, Bound())
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            _add(names, name, Bound())
        case _:
            pass


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, Bound]]:
    match node:
        case ast.Assign():
            yield from ((target, Bound(node.value)) for target in node.targets)
        case ast.AnnAssign() | ast.NamedExpr() if node.value is not None:
            yield node.target, Bound(node.value)
        case ast.AugAssign():
            yield node.target, Bound()
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield node.target, Bound(node.iter, -1)
        case ast.withitem() if node.optional_vars is not None:
            yield node.optional_vars, Bound()
        case _:
            pass


def _target(names: Names, target: ast.expr, bound: Bound) -> None:
    if isinstance(target, ast.Name):
        if isinstance(bound.value, ast.Lambda) and bound.part is None:
            bound = Bound(function=bound.value)
        _add(names, target.id, bound)
    elif isinstance(target, ast.Tuple | ast.List):
        for number, one in enumerate(target.elts):
            plain = bound.part is None and not isinstance(one, ast.Starred)
            _target(names, one, Bound(bound.value, number) if plain else Bound())
    elif isinstance(target, ast.Starred):
        _target(names, target.value, Bound())


def _add(names: Names, name: str, bound: Bound) -> None:
    names.bound.setdefault(name, []).append(bound)


Uses: TypeAlias = dict[str, list[tuple[Names, ast.expr, ast.AST]]]
"""Where each name is read: in which function, and as a part of what. Lambdas stand under ""."""


def uses_of(names: Names) -> Uses:
    """The uses of all names in a function, and in those in it."""
    found: Uses = {}
    for one in names.everywhere():
        around: dict[ast.AST, ast.AST] = {}
        for node in own_nodes(one.node):
            if not isinstance(node, _FUNCTIONS):
                around.update((child, node) for child in ast.iter_child_nodes(node))
        for node in own_nodes(one.node):
            parent = around.get(node, one.node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append((one, node, parent))
            elif isinstance(node, ast.Lambda):
                found.setdefault("", []).append((one, node, parent))
    return found
