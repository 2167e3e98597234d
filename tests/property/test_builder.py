"""Laws of the builder: what is written in the language compiles, passes the check, to the same bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import orbit_sdk as orbit
from orbit_sdk.check import check_definition
from orbit_sdk.definition.models import load_definition
from tests.unit.builder.shop import Color, Order, Result, look, pay, work

Block = list["Statement"]


@dataclass(frozen=True)
class Statement:
    """One statement: its kind, the blocks inside, and a number to choose details by."""

    kind: str
    blocks: tuple[Block, ...]
    choice: int


def otherwise(result: Result | None, make: Callable[[], Result]) -> Result:
    """A result that is there while the definition is built, else another one."""
    return make() if result is None else result


class Writer:
    """Writes a program in the language while its workflow is being built."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.numbers = count(1)

    def block(self, block: Block, known: list[str]) -> Result | None:
        """Run the statements; give the last result, if any."""
        known = list(known)
        last: Result | None = None
        for statement in block:
            result = getattr(self, statement.kind)(statement, known)
            if result is not None:
                last = result
                known.append(result.value)
        return last

    def arm(self, block: Block, known: list[str], *, value: bool) -> Callable[[], Any]:
        def run() -> Any:
            result = self.block(block, known)
            return otherwise(result, lambda: orbit.build(Result, value=known[-1])) if value else None

        return run

    def step(self, statement: Statement, known: list[str]) -> Result:
        handler = (work, look, pay)[statement.choice % 3]
        return handler(known[statement.choice % len(known)])

    def catch(self, statement: Statement, known: list[str]) -> Result:
        def caught(failure: orbit.Failure) -> Result:
            if statement.choice % 3 == 0:
                orbit.fail("CAUGHT", "caught")
            result: Result = self.arm(statement.blocks[0], [*known, failure.message], value=True)()
            return result

        return pay.options(on_failure=caught)(known[-1])

    def wait(self, statement: Statement, known: list[str]) -> Result:
        signal = orbit.Signal(f"shop.signal_{next(self.numbers)}", Result)
        ways: list[Any] = ["REVIEW", "FAIL", self.arm(statement.blocks[0], known, value=True)]
        return signal.wait(match=known[0], timeout=timedelta(hours=1), on_timeout=ways[statement.choice % 3])

    def sleep(self, statement: Statement, _known: list[str]) -> None:
        orbit.sleep(timedelta(seconds=statement.choice + 1))

    def poll(self, statement: Statement, known: list[str]) -> Result:
        failed = statement.choice % 2 == 0
        more: dict[str, Any] = {}
        if failed:
            more = {
                "failed": {"void"},
                "on_failed": lambda s: self.arm(statement.blocks[0], [*known, s.value], value=True)(),
            }
        return orbit.poll(
            lambda: look(known[-1]),
            every=timedelta(seconds=10),
            within=timedelta(minutes=5),
            state=lambda s: s.state,
            pending={"open"},
            succeeded={"done"},
            **more,
        )

    def branch(self, statement: Statement, known: list[str]) -> Result | None:
        value = statement.choice % 2 == 0
        arms = [self.arm(block, known, value=value) for block in statement.blocks]
        last = arms[-1]
        if statement.choice % 5 == 0:
            arms.append(lambda: orbit.fail("BRANCH", "branch"))
        cases = [
            orbit.when((self.order.rows > number) & self.order.ok, arm) for number, arm in enumerate(arms)
        ]
        result: Result | None = orbit.branch(*cases, orbit.otherwise(last))
        return result

    def match(self, statement: Statement, known: list[str]) -> Result | None:
        value = statement.choice % 2 == 0
        return orbit.match(
            self.order.color,
            {
                Color.RED: self.arm(statement.blocks[0], known, value=value),
                Color.BLUE: self.arm(statement.blocks[-1], known, value=value),
            },
        )

    def some(self, statement: Statement, known: list[str]) -> None:
        orbit.when_some(
            self.order.note, lambda note: self.arm(statement.blocks[0], [*known, note], value=True)()
        )

    def parallel(self, statement: Statement, known: list[str]) -> Result:
        def arm(block: Block) -> Callable[[], Result]:
            def run() -> Result:
                first = work(known[0])
                return otherwise(self.block(block, [*known, first.value]), lambda: first)

            return run

        results = orbit.parallel(*(arm(block) for block in statement.blocks), arm([]))
        return results[statement.choice % len(results)]


_KINDS = ("step", "catch", "wait", "sleep", "poll", "branch", "match", "some", "parallel")
_LEAVES = st.builds(Statement, st.sampled_from(["step", "sleep"]), st.just(()), st.integers(0, 29))
_PROGRAMS = st.recursive(
    st.lists(_LEAVES, min_size=1, max_size=2),
    lambda blocks: st.lists(
        st.builds(
            Statement,
            st.sampled_from(_KINDS),
            st.lists(blocks, min_size=1, max_size=2).map(tuple),
            st.integers(0, 29),
        ),
        max_size=3,
    ),
    max_leaves=30,
)


def declared(program: Block) -> orbit.Workflow[Order, Result]:
    @orbit.workflow("shop.random", version=1)
    def random(order: Order) -> Result:
        result = Writer(order).block(program, [order.order_id])
        return otherwise(result, lambda: orbit.build(Result, value="nothing"))

    return random


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_PROGRAMS)
def test_what_the_builder_emits_always_passes_the_check(program: Block) -> None:
    compiled = declared(program).compile()
    assert [str(one) for one in check_definition(compiled.definition) if one.is_error] == []
    assert load_definition(compiled.definition.to_json()) == compiled.definition
    assert declared(program).compile().definition.canonical() == compiled.definition.canonical()
