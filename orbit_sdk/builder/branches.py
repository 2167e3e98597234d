"""BRANCH: exactly one of several arms runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, cast, overload

from typing_extensions import TypeVar

from orbit_sdk.builder import shapes
from orbit_sdk.builder.arms import End, check_arm, meet, run_arm
from orbit_sdk.builder.conditions import as_condition, constant_of, model_of
from orbit_sdk.builder.current import current_trace
from orbit_sdk.builder.express import use
from orbit_sdk.builder.graph import Expr, OpenExit, Scope
from orbit_sdk.builder.late import refuse_late_binding
from orbit_sdk.builder.refs import Ref, RefData, ref_data
from orbit_sdk.builder.same import warn_of_equal_arms
from orbit_sdk.builder.trace import Trace
from orbit_sdk.check.narrow import Known, certain, proofs
from orbit_sdk.definition import expressions
from orbit_sdk.handlers.problems import Place, caller_place
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.json_strict import Json

__all__ = ["Case", "branch", "match", "otherwise", "when", "when_some"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")
V = TypeVar("V")
N = TypeVar("N")


@dataclass(frozen=True, slots=True)
class Case(Generic[T_co]):
    """One case of a branch: a condition (None: otherwise) and what to do."""

    condition: object
    arm: Callable[[], T_co]
    place: Place | None


def when(condition: bool, arm: Callable[[], T]) -> Case[T]:
    """Take `arm` when the condition holds and none before it did."""
    trace = current_trace("orbit.when")
    as_condition(trace, condition, "orbit.when")
    check_arm(trace, arm, "orbit.when")
    return Case(condition, arm, caller_place())


def otherwise(arm: Callable[[], T]) -> Case[T]:
    """Take `arm` when no condition held."""
    check_arm(current_trace("orbit.otherwise"), arm, "orbit.otherwise")
    return Case(None, arm, caller_place())


def branch(*cases: Case[T], key: str | None = None, title: str | None = None) -> T:
    """Run the first case whose condition holds, and give what its arm returns. `otherwise` comes last."""
    trace = current_trace("orbit.branch")
    _refuse_other_than_cases(trace, cases)
    last = [number for number, case in enumerate(cases) if case.condition is None]
    if last != [len(cases) - 1] or len(cases) < 2:
        raise trace.refuse(
            "BRANCH",
            "a branch needs cases and one orbit.otherwise, at the end",
            "write orbit.branch(orbit.when(…), orbit.otherwise(lambda: None))",
        )
    conditions = [as_condition(trace, case.condition, "orbit.when").expr for case in cases[:-1]]
    step = trace.make_key(key, _base_of_conditions(conditions))
    listed: list[Json] = [{"when": expr} for expr in conditions]
    plans = []
    excluded: frozenset[Known] = frozenset()
    for number, (case, expr) in enumerate(zip(cases, conditions, strict=False)):
        holds, fails = proofs(model_of(expr))
        plans.append(_Plan(f"cases.{number}", case.arm, _arm_name(step, number, case.arm), holds | excluded))
        excluded |= fails
    plans.append(_Plan("otherwise", cases[-1].arm, f"`otherwise` of {step}", excluded))
    places = [case.place for case in cases]
    return cast(T, _run(trace, step, _body({"cases": listed}, title), plans, places))


def _refuse_other_than_cases(trace: Trace, cases: Sequence[object]) -> None:
    for case in cases:
        if not isinstance(case, Case):
            found = f"orbit.branch is given {case!r}"
            raise trace.refuse("BRANCH", found, "write orbit.when(condition, arm) and orbit.otherwise(arm)")


@overload
def match(
    value: K, arms: Mapping[K, Callable[[], T]], *, key: str | None = ..., title: str | None = ...
) -> T: ...
@overload
def match(
    value: K,
    arms: Mapping[K, Callable[[], T]],
    *,
    otherwise: Callable[[], N],
    key: str | None = ...,
    title: str | None = ...,
) -> T | N: ...
def match(
    value: Any,
    arms: Mapping[Any, Callable[[], Any]],
    *,
    otherwise: Callable[[], Any] | None = None,
    key: str | None = None,
    title: str | None = None,
) -> Any:
    """Run the arm of the value that is there. Every possible value needs an arm, or give `otherwise`."""
    trace = current_trace("orbit.match")
    if not isinstance(value, Ref):
        raise trace.refuse("MATCH", f"orbit.match is given {value!r}", "match on a reference")
    if not arms:
        raise trace.refuse("MATCH", f"the arms are {arms!r}", 'write {"done": lambda: …}')
    data = ref_data(value)
    on = use(trace, value, "orbit.match")
    groups = _groups(trace, value, arms)
    if otherwise is None:
        _refuse_missing(trace, value, [constant for group in groups for constant in group.constants])
    step = trace.make_key(key, f"by_{_last_word(on)}")
    some = _certain_of(data)
    listed: list[Json] = [{"equals": list(group.constants)} for group in groups]
    plans = [
        _Plan(
            f"cases.{number}",
            group.arm,
            f"the arm of {group.constants[0]!r} of {step}",
            frozenset() if None in group.constants else some,
        )
        for number, group in enumerate(groups)
    ]
    if otherwise is not None:
        told = any(None in group.constants for group in groups)
        plans.append(_Plan("otherwise", otherwise, f"`otherwise` of {step}", some if told else frozenset()))
    return _run(trace, step, _body({"on": on, "cases": listed}, title), plans, [])


@overload
def when_some(
    value: V | None, some: Callable[[V], T], *, key: str | None = ..., title: str | None = ...
) -> T | None: ...
@overload
def when_some(
    value: V | None,
    some: Callable[[V], T],
    none: Callable[[], N],
    *,
    key: str | None = ...,
    title: str | None = ...,
) -> T | N: ...
def when_some(
    value: Any,
    some: Callable[[Any], Any],
    none: Callable[[], Any] | None = None,
    *,
    key: str | None = None,
    title: str | None = None,
) -> Any:
    """Run `some` with the value when it is there, else `none` (which leaves null when it is not given)."""
    trace = current_trace("orbit.when_some")
    if not isinstance(value, Ref):
        raise trace.refuse("MATCH", f"orbit.when_some is given {value!r}", "give it a reference")
    data = ref_data(value)
    if not shapes.is_nullable(data.schema, trace.book.types):
        raise trace.refuse("MATCH", f"{value!r} is never null", "use it without orbit.when_some")
    on = use(trace, value, "orbit.when_some")
    check_arm(trace, some, "orbit.when_some")
    step = trace.make_key(key, f"if_{_last_word(on)}")
    cases: list[Json] = [{"when": {"not": {"is_null": on}}}]

    def with_value() -> Any:
        schema = shapes.without_null(data.schema, trace.book.types)
        return some(Ref(RefData(trace, on, schema, trace.scope)))

    plans = [
        _Plan("cases.0", with_value, f"`some` of {step}", _certain_of(data)),
        _Plan("otherwise", none or (lambda: None), f"`none` of {step}", frozenset()),
    ]
    return _run(trace, step, _body({"cases": cases}, title), plans, [])


@dataclass(frozen=True, slots=True)
class _Plan:
    exit: str
    arm: Callable[[], Any]
    name: str
    known: frozenset[Known]


@dataclass(slots=True)
class _Group:
    arm: Callable[[], Any]
    constants: list[Json]


def _run(
    trace: Trace, step: str, body: dict[str, Any], plans: Sequence[_Plan], places: list[Place | None]
) -> Any:
    draft = trace.add("BRANCH", step, body, None)
    draft.case_places = places
    refuse_late_binding(trace, [plan.arm for plan in plans], step)
    spans: list[tuple[int, int]] = []
    ends: list[End] = []
    for plan in plans:
        start = len(trace.drafts)
        scope = Scope(plan.name, trace.scope, [OpenExit(draft, plan.exit)], plan.known)
        ends.append(run_arm(trace, scope, plan.arm))
        spans.append((start, len(trace.drafts)))
    warn_of_equal_arms(trace, draft, spans, ends)
    return meet(trace, ends, base=f"{step}_value")


def _groups(trace: Trace, value: Ref, arms: Mapping[Any, Callable[[], Any]]) -> list[_Group]:
    """One group per arm: the same function under several values runs once."""
    groups: list[_Group] = []
    seen: set[str] = set()
    for case, arm in arms.items():
        check_arm(trace, arm, f"the arm of {case!r}")
        constant = constant_of(trace, case, ref_data(value).schema, f"orbit.match of {value!r}")
        text = canonical_json(constant)
        if text in seen:
            raise trace.refuse(
                "MATCH", f"{constant!r} stands twice (by name and by value?)", "give it one arm"
            )
        seen.add(text)
        known = next((group for group in groups if group.arm is arm), None)
        if known is None:
            groups.append(_Group(arm, [constant]))
        else:
            known.constants.append(constant)
    return groups


def _refuse_missing(trace: Trace, value: Ref, given: Sequence[Json]) -> None:
    closed = shapes.closed_values(ref_data(value).schema, trace.book.types)
    if closed is None:
        raise trace.refuse(
            "NOT_EXHAUSTIVE", f"{value!r} can have any value of its type", "add otherwise=lambda: …"
        )
    have = {canonical_json(one) for one in given}
    missing = [one for one in closed if canonical_json(one) not in have]
    if missing:
        names = ", ".join(repr(one) for one in missing)
        raise trace.refuse(
            "NOT_EXHAUSTIVE",
            f"orbit.match of {value!r} has no arm for {names}",
            f"add arms for {names}, or otherwise=",
        )


def _certain_of(data: RefData) -> frozenset[Known]:
    if "ref" not in data.expr:
        return frozenset()
    return certain(expressions.Ref.model_validate(data.expr))


def _body(body: dict[str, Any], title: str | None) -> dict[str, Any]:
    return body if title is None else {**body, "title": title}


def _arm_name(step: str, number: int, arm: Callable[[], Any]) -> str:
    name = getattr(arm, "__name__", "<lambda>")
    return f"case {number + 1} of {step}" if name == "<lambda>" else f"the arm {name} of {step}"


def _base_of_conditions(conditions: Sequence[Expr]) -> str:
    """A branch is named after the first thing it asks for."""
    ref = _first_ref(conditions[0])
    return f"if_{_last_word(ref)}" if ref is not None else "choose"


def _first_ref(value: Json) -> Expr | None:
    if isinstance(value, dict):
        if "ref" in value:
            return value
        return next((found for one in value.values() if (found := _first_ref(one)) is not None), None)
    if isinstance(value, list):
        return next((found for one in value if (found := _first_ref(one)) is not None), None)
    return None


def _last_word(expr: Expr) -> str:
    path = expr.get("path")
    if isinstance(path, list) and path:
        return str(path[-1])
    return str(expr.get("of", expr.get("ref", "value")))
