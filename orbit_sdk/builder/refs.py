"""The two stand-ins that a workflow function meets: a reference to a value, and a condition.

A reference claims, to type checkers, the type of the value it stands for. At run time it records what may
be recorded (fields, comparisons) and refuses everything else with the author's line: nothing has run yet.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from orbit_sdk.builder.graph import Expr, Scope
from orbit_sdk.handlers.problems import BuildCode, BuildError
from orbit_sdk.handlers.type_schemas import Schema

__all__ = ["Condition", "ConditionData", "Owner", "Ref", "RefData", "condition_data", "ref_data"]


class Owner(Protocol):
    """What a reference asks of the build it belongs to (a `Trace`)."""

    @property
    def name(self) -> str:
        """The workflow."""
        ...

    def refuse(self, code: BuildCode, found: str, instead: str) -> BuildError:
        """Remember a misuse and give the error to raise."""
        ...

    def field(self, data: RefData, name: str) -> Any:
        """`ref.name`."""
        ...

    def item(self, data: RefData, key: object) -> Any:
        """`ref[key]`."""
        ...

    def is_author(self, names: Mapping[str, Any]) -> bool:
        """Whether these are the global names of the workflow function's own module."""
        ...

    def label(self, data: RefData) -> str:
        """`<ref input.job_id: string>`."""
        ...

    def compare(self, operator: str, ref: Ref, other: object) -> Any:
        """`ref == other` and its kin."""
        ...

    def join(self, operator: str, left: object, right: object) -> Any:
        """`left & right`, `left | right`."""
        ...


@dataclass(frozen=True, slots=True)
class RefData:
    """What a reference knows: its expression, its type, and the arm it was made in."""

    trace: Owner
    expr: Expr
    schema: Schema
    scope: Scope
    signal: str | None = None
    """The signal, when this is the body received by a wait itself."""
    unusable: tuple[str, str] | None = None
    """What to say, and to write instead, if the value is used after all."""


@dataclass(frozen=True, slots=True)
class ConditionData:
    """What a condition knows; `scope` is the innermost arm of the references in it."""

    trace: Owner
    expr: Expr
    scope: Scope


def ref_data(ref: Ref) -> RefData:
    """The inside of a reference."""
    data: RefData = object.__getattribute__(ref, "_orbit")
    return data


def condition_data(condition: Condition) -> ConditionData:
    """The inside of a condition."""
    data: ConditionData = object.__getattribute__(condition, "_orbit")
    return data


_COMPUTE = "compute it in a handler, and pass the reference to that handler"
_EACH = (
    "a workflow does not branch out over data: start one workflow per item (a batch of starts), or do "
    "all items in one handler; for constants there is orbit.parallel_each"
)
_NOT_RUN = "nothing runs while a definition is built"


def _refusing(code: BuildCode, doing: str, instead: str) -> Callable[..., Any]:
    def refuse(self: Any, *_args: object, **_kwargs: object) -> NoReturn:
        data = object.__getattribute__(self, "_orbit")
        raise data.trace.refuse(code, f"{doing} {self!r}: {_NOT_RUN}, so its value is not known yet", instead)

    return refuse


def _refuse_class_test(ref: Ref) -> None:
    """`isinstance`, and a class pattern, ask a value for its class: refused in the author's own module.

    Elsewhere (the standard library, debuggers) asking is harmless.
    """
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    while caller is not None and caller.f_globals.get("__name__") == "abc":
        caller = caller.f_back
    data = ref_data(ref)
    if caller is not None and data.trace.is_author(caller.f_globals):
        raise data.trace.refuse(
            "CLASS_TEST",
            f"the class of {ref!r} was asked for (isinstance, or a class pattern): {_NOT_RUN}",
            "use orbit.match on a field that tells the kinds apart",
        )


_BRANCH = "use orbit.branch(orbit.when(…), …) or orbit.match; combine with &, | and orbit.not_"


class Condition:
    """A comparison, judged when the workflow runs. Combine with `&`, `|` and `orbit.not_`."""

    __slots__ = ("_orbit",)

    def __init__(self, data: ConditionData) -> None:
        object.__setattr__(self, "_orbit", data)

    def __and__(self, other: object) -> Any:
        return condition_data(self).trace.join("and", self, other)

    def __or__(self, other: object) -> Any:
        return condition_data(self).trace.join("or", self, other)

    def __rand__(self, other: object) -> Any:
        return condition_data(self).trace.join("and", other, self)

    def __ror__(self, other: object) -> Any:
        return condition_data(self).trace.join("or", other, self)

    def __repr__(self) -> str:
        return f"<condition {condition_data(self).expr}>"

    __bool__ = _refusing("TRUTH_VALUE", "the truth was asked of", _BRANCH)
    __invert__ = _refusing("INVERT", "`~` was applied to", "write orbit.not_(…)")
    __hash__ = _refusing("HASH", "a hash was asked of", _BRANCH)
    __str__ = _refusing("TEXT", "a text was made of", _COMPUTE)
    __format__ = _refusing("TEXT", "a text was made of", _COMPUTE)
    __eq__ = _refusing("COMPARE", "a comparison was made with", "use the condition itself, or orbit.not_(…)")
    __ne__ = _refusing("COMPARE", "a comparison was made with", "use the condition itself, or orbit.not_(…)")
    __await__ = _refusing("AWAIT", "`await` was applied to", _BRANCH)


class Ref:
    """A value that will be there when the workflow runs."""

    __slots__ = ("_orbit",)

    def __init__(self, data: RefData) -> None:
        object.__setattr__(self, "_orbit", data)

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            _refuse_class_test(self)
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        data = ref_data(self)
        return data.trace.field(data, name)

    def __getitem__(self, key: object) -> Any:
        data = ref_data(self)
        return data.trace.item(data, key)

    def __repr__(self) -> str:
        return ref_data(self).trace.label(ref_data(self))

    def __copy__(self) -> Ref:
        return self

    def __deepcopy__(self, _memo: object) -> Ref:
        return self

    def __eq__(self, other: object) -> Any:
        return ref_data(self).trace.compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return ref_data(self).trace.compare("ne", self, other)

    def __lt__(self, other: object) -> Any:
        return ref_data(self).trace.compare("lt", self, other)

    def __le__(self, other: object) -> Any:
        return ref_data(self).trace.compare("le", self, other)

    def __gt__(self, other: object) -> Any:
        return ref_data(self).trace.compare("gt", self, other)

    def __ge__(self, other: object) -> Any:
        return ref_data(self).trace.compare("ge", self, other)

    def __and__(self, other: object) -> Any:
        return ref_data(self).trace.join("and", self, other)

    def __or__(self, other: object) -> Any:
        return ref_data(self).trace.join("or", self, other)

    def __rand__(self, other: object) -> Any:
        return ref_data(self).trace.join("and", other, self)

    def __ror__(self, other: object) -> Any:
        return ref_data(self).trace.join("or", other, self)

    __bool__ = _refusing("TRUTH_VALUE", "the truth was asked of", _BRANCH)
    __hash__ = _refusing("HASH", "a hash (a dict key, a set member) was asked of", _BRANCH)
    __str__ = _refusing("TEXT", "a text was made of", 'use orbit.text("…{}", ref) for keys; else ' + _COMPUTE)
    __format__ = _refusing(
        "TEXT", "a text was made of", 'use orbit.text("…{}", ref) for keys; else ' + _COMPUTE
    )
    __len__ = _refusing("COMPUTE", "a length was asked of", _COMPUTE)
    __iter__ = _refusing("COMPUTE", "a loop or an unpacking runs over", _EACH)
    __contains__ = _refusing(
        "COMPUTE", "`in` was asked of", "orbit.is_in(ref, […]) for constants; else " + _COMPUTE
    )
    __invert__ = _refusing("INVERT", "`~` was applied to", "write orbit.not_(…)")
    __await__ = _refusing(
        "AWAIT", "`await` was applied to", "use the reference itself: calling the handler is enough"
    )
    __aiter__ = _refusing("AWAIT", "`async for` runs over", _COMPUTE)
    __enter__ = _refusing("COMPUTE", "`with` was applied to", _COMPUTE)
    __exit__ = _refusing("COMPUTE", "`with` was applied to", _COMPUTE)
    __call__ = _refusing("COMPUTE", "a call was made of", "call handlers, not their results")
    __setattr__ = _refusing("ASSIGN", "something was assigned inside", "make a new value with orbit.build")
    __delattr__ = _refusing("ASSIGN", "something was deleted inside", "make a new value with orbit.build")
    __setitem__ = _refusing("ASSIGN", "something was assigned inside", "make a new value with orbit.build")
    __delitem__ = _refusing("ASSIGN", "something was deleted inside", "make a new value with orbit.build")


_ARITHMETIC = (
    *(
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "divmod",
        "pow",
        "lshift",
        "rshift",
        "matmul",
        "xor",
    ),
    *("radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rdivmod", "rpow", "rlshift", "rrshift"),
    *("rmatmul", "rxor", "neg", "pos", "abs", "int", "float", "complex", "index", "round", "trunc", "floor"),
    *("ceil", "bytes", "reversed"),
)
for _name in _ARITHMETIC:
    _method = _refusing("COMPUTE", f"`{_name}` was computed with", _COMPUTE)
    setattr(Ref, f"__{_name}__", _method)
    if _name not in ("bytes", "reversed"):
        setattr(Condition, f"__{_name}__", _method)
