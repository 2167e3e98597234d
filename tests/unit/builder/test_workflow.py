"""Declaring and compiling workflows."""

import json
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import orbit_sdk as orbit
from orbit_sdk.check import check_definition
from orbit_sdk.definition.models import read_definition
from orbit_sdk.errors import InvalidArgument
from tests.typing.jobs_external import Job, Outcome, external_job
from tests.typing.vocabulary import sell
from tests.unit.builder.shop import Order, Result, look, work

GOLDEN = Path(__file__).parent / "jobs_external.json"


def test_the_example_compiles_to_the_checked_in_document() -> None:
    compiled = external_job.compile()
    assert compiled.definition.to_json() == json.loads(GOLDEN.read_text())
    assert compiled.warnings == ()
    assert read_definition(compiled.definition.canonical()) == compiled.definition


@pytest.mark.parametrize("workflow", [external_job, sell], ids=lambda one: str(one.id))
def test_what_the_builder_emits_passes_the_check(workflow: orbit.Workflow[Any, Any]) -> None:
    compiled = workflow.compile()
    assert [one for one in check_definition(compiled.definition) if one.is_error] == []


@pytest.mark.parametrize("workflow", [external_job, sell], ids=lambda one: str(one.id))
def test_compiling_twice_gives_identical_bytes(workflow: orbit.Workflow[Any, Any]) -> None:
    first, second = workflow.compile(), workflow.compile()
    assert first.definition.canonical() == second.definition.canonical()
    assert first.digest == second.digest
    assert first.side == second.side


def test_the_document_does_not_depend_on_the_hash_seed() -> None:
    code = "from tests.typing.vocabulary import sell; print(sell.compile().digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {sell.compile().digest + "\n"}


def test_two_threads_that_compile_at_once_do_not_mix() -> None:
    barrier = threading.Barrier(2)

    def met(order: Order) -> None:
        work("a")
        barrier.wait(10)
        look(order.order_id)
        barrier.wait(10)
        work("b")

    flows = [orbit.workflow(f"shop.flow_{n}", version=1)(met) for n in range(2)]
    found: dict[str, dict[str, Any]] = {}

    def compile_one(flow: orbit.Workflow[Order, None]) -> None:
        found[flow.id] = flow.compile().definition.to_json()

    threads = [threading.Thread(target=compile_one, args=(flow,)) for flow in flows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [list(found[flow.id]["nodes"]) for flow in flows] == [["done", "look", "work", "work_2"]] * 2
    assert {document["id"] for document in found.values()} == {"shop.flow_0", "shop.flow_1"}


def test_a_workflow_without_steps_ends_at_once() -> None:
    @orbit.workflow("shop.empty", version=1)
    def empty(order: Order) -> str:
        return order.order_id

    document = empty.compile().definition.to_json()
    assert document["start"] == "done"
    assert document["output"] == {"type": "string"}


def test_title_and_description_come_from_arguments_only() -> None:
    @orbit.workflow("shop.titled", version=2, title="A title", description="What it is for.")
    def titled(order: Order) -> None:
        """Not this."""

    document = titled.compile().definition.to_json()
    assert (document["title"], document["description"]) == ("A title", "What it is for.")
    assert "Not this" not in json.dumps(document)


def test_a_form_that_the_definition_refuses_is_told_with_its_place() -> None:
    @orbit.workflow("shop.long", version=1)
    def long(order: Order) -> Result:
        return work.options(title="x" * 300)("a")

    with pytest.raises(orbit.BuildError) as caught:
        long.compile()
    assert caught.value.reason == "FORM_INVALID"
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_findings_of_the_check_are_errors_with_their_place() -> None:
    @orbit.workflow("shop.misfit", version=1)
    def misfit(order: Order) -> Result:
        return work(order.rows)  # type: ignore[arg-type]

    with pytest.raises(orbit.BuildError) as caught:
        misfit.compile()
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_input_and_output_have_a_json_side() -> None:
    job = Job(job_id="a", rows=2)
    assert external_job.dump_input(job) == {"job_id": "a", "rows": 2}
    assert external_job.parse_input({"job_id": "a", "rows": 2}) == job
    assert external_job.parse_output({"receipt": None}) == Outcome(receipt=None)
    with pytest.raises(InvalidArgument, match="job_id"):
        external_job.parse_input({"job_id": 1, "rows": 2})
    with pytest.raises(InvalidArgument):
        external_job.dump_input(Outcome(receipt=None))  # type: ignore[arg-type]


async def async_flow(order: Order) -> None: ...


def generator_flow(order: Order) -> Any:
    yield 1


def no_input() -> None: ...


def two_inputs(order: Order, other: Order) -> None: ...


def defaulted(order: Order | None = None) -> None: ...


def many(*orders: Order) -> None: ...


def untyped(order) -> None: ...  # type: ignore[no-untyped-def]


def no_result(order: Order):  # type: ignore[no-untyped-def]
    return None


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("ASYNC", async_flow),
        ("GENERATOR", generator_flow),
        ("WORKFLOW_SHAPE", no_input),
        ("WORKFLOW_SHAPE", two_inputs),
        ("WORKFLOW_SHAPE", defaulted),
        ("WORKFLOW_SHAPE", many),
        ("WORKFLOW_SHAPE", 3),
        ("MISSING_ANNOTATION", untyped),
        ("MISSING_ANNOTATION", no_result),
    ],
)
def test_a_function_that_is_no_workflow_is_refused(code: str, function: Any) -> None:
    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow("shop.wrong", version=1)(function)
    assert caught.value.reason == code
    if callable(function):
        assert caught.value.place is not None
        assert caught.value.place.line == function.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("NAME", {"id": "Shop"}),
        ("NAME", {"id": "shop flow"}),
        ("VERSION", {"version": 0}),
        ("VERSION", {"version": True}),
        ("OPTION", {"on_failure": "IGNORE"}),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(code: str, given: dict[str, Any]) -> None:
    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow(**{"id": "shop.flow", "version": 1, **given})
    assert caught.value.reason == code
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_a_type_of_input_that_json_cannot_carry_is_refused_by_name() -> None:
    @orbit.workflow("shop.set", version=1)
    def flow(tags: set[str]) -> None: ...

    with pytest.raises(orbit.BuildError, match="a set has no JSON form") as caught:
        flow.compile()
    assert caught.value.reason == "TYPE"
    assert len(caught.value.problems) == 1


def test_a_local_type_that_hints_cannot_find_is_explained() -> None:
    class Local: ...

    def flow(order: "Local") -> None: ...

    with pytest.raises(orbit.BuildError, match="top level of a module") as caught:
        orbit.workflow("shop.local", version=1)(flow).compile()
    assert caught.value.reason == "UNKNOWN_NAME"


def test_two_signals_of_one_name_must_have_one_type() -> None:
    @orbit.workflow("shop.signals", version=1)
    def flow(order: Order) -> None:
        day = timedelta(days=1)
        orbit.Signal("shop.same", Result).wait(match="a", timeout=day, on_timeout="FAIL")
        orbit.Signal("shop.same", Order).wait(match="b", timeout=day, on_timeout="FAIL")

    with pytest.raises(orbit.BuildError) as caught:
        flow.compile()
    assert caught.value.reason == "SIGNAL_TWICE"


def test_two_handlers_of_one_key_are_refused() -> None:
    @orbit.handler("shop.work", version=1)
    def other(ctx: orbit.TaskContext) -> None: ...

    @orbit.workflow("shop.twice", version=1)
    def flow(order: Order) -> None:
        work("a")
        other()

    with pytest.raises(orbit.BuildError) as caught:
        flow.compile()
    assert caught.value.reason == "HANDLER_TWICE"


def test_importing_the_sdk_stays_light() -> None:
    code = (
        "import sys, orbit_sdk; before = set(sys.modules); orbit_sdk.workflow, orbit_sdk.handler;"
        "heavy = {'networkx', 'httpx', 'jsonschema', 'typer', 'rich', 'websockets', 'asyncio'};"
        "print(sorted(heavy & before), 'pydantic' in before, sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[] False []"


def test_every_public_name_can_be_reached_and_no_other() -> None:
    assert [name for name in orbit.__all__ if not hasattr(orbit, name)] == []
    assert set(orbit.__all__) <= set(dir(orbit))
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = orbit.nothing_of_that_name
