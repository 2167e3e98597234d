"""More workflows that people know from elsewhere: written as Orbit wants them, or refused by name."""

# Some of what is written here is wrong on purpose.
# mypy: ignore-errors

from datetime import timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import orbit_sdk as orbit

DAY = timedelta(days=1)


class Order(BaseModel):
    order_id: str
    customer: str
    lines: list[int]


class Decision(BaseModel):
    verdict: Literal["approved", "denied", "unclear"]


class Answer(BaseModel):
    wish: Literal["hold", "no_thanks"]


class Book(BaseModel):
    state: Literal["available", "on_loan", "lost"]


class Report(BaseModel):
    report_id: str


class Invoice(BaseModel):
    invoice_id: str
    approver: str


class Verdict(BaseModel):
    approved: bool


@orbit.handler("elsewhere.provision", version=1, errors=("MISSING_ID", "MISSING_ITEM", "MISSING_QUANTITY"))
def provision(ctx: orbit.TaskContext, order: Order) -> None: ...


@orbit.handler("elsewhere.apply", version=1)
def apply_order(ctx: orbit.TaskContext, order: Order) -> None: ...


@orbit.handler("elsewhere.mend", version=1)
def mend(ctx: orbit.TaskContext, order: Order, what: str) -> None: ...


@orbit.handler("elsewhere.tell", version=1)
def tell(ctx: orbit.TaskContext, to: str, text: str) -> None: ...


@orbit.handler("elsewhere.find", version=1, recovery=orbit.Recovery.READ_ONLY)
def find(ctx: orbit.TaskContext, book: str) -> Book: ...


@orbit.handler("elsewhere.report", version=1)
def report(ctx: orbit.TaskContext, customer: str) -> Report: ...


@orbit.handler("elsewhere.pay", version=1)
def pay(ctx: orbit.TaskContext, report_id: str) -> None: ...


DECISION = orbit.Signal("elsewhere.decision", Decision)
ANSWER = orbit.Signal("elsewhere.answer", Answer)
VERDICT = orbit.Signal("elsewhere.verdict", Verdict)


def nodes(workflow: orbit.Workflow[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = workflow.compile().definition.to_json()["nodes"]
    return found


@orbit.workflow("elsewhere.provisioning", version=1)
def provisioning(order: Order) -> None:
    def wrong(failure: orbit.Failure) -> None:
        orbit.match(
            failure.code,
            {
                "MISSING_ID": lambda: mend(order, "id"),
                "MISSING_ITEM": lambda: mend(order, "item"),
                "MISSING_QUANTITY": lambda: mend(order, "quantity"),
            },
            otherwise=lambda: orbit.fail("NOT_PROVISIONED", "the order was refused otherwise"),
        )
        orbit.fail("MENDED", "the order was mended and has to be sent again")

    provision.options(on_failure=wrong)(order)
    apply_order(order)


def test_each_kind_of_error_has_its_own_way() -> None:
    found = nodes(provisioning)
    assert found["provision"]["on_failure"] == {"next": "by_code"}
    assert [case["equals"] for case in found["by_code"]["cases"]] == [
        ["MISSING_ID"],
        ["MISSING_ITEM"],
        ["MISSING_QUANTITY"],
    ]
    assert found["by_code"]["otherwise"] == "not_provisioned"


def test_handing_over_to_another_workflow_is_refused_with_the_recipe() -> None:
    @orbit.workflow("elsewhere.hand_over", version=1)
    def hand_over(order: Order) -> None:
        provision(order)
        provisioning(order)

    with pytest.raises(orbit.BuildError) as caught:
        hand_over.compile()
    assert caught.value.reason == "NESTED"
    assert "call a handler that starts the other workflow" in str(caught.value)


@orbit.workflow("elsewhere.credit", version=1)
def credit(order: Order) -> None:
    tell("bureau", order.customer)
    decision = DECISION.wait(match=order.customer, timeout=timedelta(minutes=15), on_timeout="REVIEW")
    orbit.match(
        decision.verdict,
        {"approved": lambda: apply_order(order)},
        otherwise=lambda: tell(order.customer, "rejected"),
    )


def test_a_call_back_has_a_limit_and_a_default() -> None:
    found = nodes(credit)
    assert (found["decision"]["timeout_ms"], found["decision"]["on_timeout"]) == (900_000, "REVIEW")
    assert found["by_verdict"]["otherwise"] == "tell_2"


def test_a_wait_without_a_limit_or_a_way_out_cannot_be_written() -> None:
    @orbit.workflow("elsewhere.unlimited", version=1)
    def unlimited(order: Order) -> None:
        DECISION.wait(match=order.customer)

    with pytest.raises(orbit.BuildError, match=r"\.wait\(…\) needs timeout, on_timeout"):
        unlimited.compile()


@orbit.workflow("elsewhere.lending", version=1)
def lending(order: Order) -> str:
    book = find(order.order_id)

    def on_loan() -> str:
        tell(order.customer, "on loan: hold it?")
        answer = ANSWER.wait(match=order.order_id, timeout=7 * DAY, on_timeout="FAIL")
        return orbit.match(answer.wish, {"hold": held, "no_thanks": lambda: "not wanted"})

    def held() -> str:
        orbit.poll(
            lambda: find(order.order_id),
            every=14 * DAY,
            within=364 * DAY,
            state=lambda one: one.state,
            pending={"on_loan"},
            succeeded={"available"},
            failed={"lost"},
            on_failed=lambda _book: orbit.fail("LOST", "the book is lost"),
        )
        return "held"

    return orbit.match(book.state, {"on_loan": on_loan, "available": lambda: "lent", "lost": lambda: "lost"})


def test_either_of_two_answers_is_one_signal_and_looking_again_is_a_poll() -> None:
    found = nodes(lending)
    assert [key for key, node in found.items() if node["kind"] == "WAIT"] == ["answer"]
    assert (found["find_2"]["every_ms"], found["find_2"]["max_rounds"]) == (14 * 86_400_000, 26)


def test_going_back_to_look_again_is_refused_at_both_ends() -> None:
    def look_up(order: Order) -> Any:
        book = find(order.order_id)
        return orbit.match(
            book.state, {"on_loan": lambda: look_up(order)}, otherwise=lambda: tell(order.customer, "done")
        )

    def flow(order: Order) -> None:
        look_up(order)

    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow("elsewhere.for_ever", version=1)(flow).compile()
    assert caught.value.reason == "ENDLESS"
    assert "look_up" in str(caught.value)
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def refusal(body: Any) -> orbit.BuildError:
    def flow(order: Order) -> None:
        body(order)

    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow("elsewhere.refused", version=1)(flow).compile()
    return caught.value


def test_a_step_for_each_item_of_the_input_is_refused_by_name() -> None:
    for body in (
        lambda order: [mend(order, "a") for _line in order.lines],
        lambda order: orbit.parallel_each(order.lines, lambda _line: mend(order, "a")),
        lambda _order: orbit.for_each,
    ):
        assert "start one workflow per item" in str(refusal(body))


def test_the_first_to_answer_wins_is_refused_by_name() -> None:
    def body(order: Order) -> Any:
        return orbit.parallel(lambda: tell("nurse", "a"), lambda: tell("doctor", "a"), compete=True)

    error = refusal(body)
    assert error.reason == "ABSENT"
    assert "first-wins" in str(error)
    assert "first-wins" in str(refusal(lambda _order: orbit.race))


def test_a_step_that_depends_on_how_others_ended_is_refused() -> None:
    kept: dict[str, Any] = {}

    def body(order: Order) -> Any:
        return orbit.parallel(
            lambda: kept.update(a=find("a")),
            lambda: kept.update(b=find("b")),
            lambda: orbit.branch(
                orbit.when((kept["a"].state == "lost") | (kept["b"].state == "lost"), lambda: tell("x", "y")),
                orbit.otherwise(lambda: None),
            ),
        )

    error = refusal(body)
    assert error.reason == "OUTSIDE_ARM"
    assert "kept" not in str(error)
    assert "let them meet first" in str(error)


def test_a_graph_that_does_not_nest_is_told_how_to_nest() -> None:
    kept: dict[str, Any] = {}

    def body(order: Order) -> Any:
        def left() -> Any:
            kept["a"] = find("a")
            return tell("c", "needs a")

        def right() -> Any:
            find("b")
            return orbit.branch(
                orbit.when(kept["a"].state == "lost", lambda: tell("d", "needs a and b")),
                orbit.otherwise(lambda: None),
            )

        return orbit.parallel(left, right)

    assert "arm 1 of orbit.parallel" in str(refusal(body))


@orbit.workflow("elsewhere.nested", version=1)
def nested(order: Order) -> None:
    first, second = orbit.parallel(lambda: find("a"), lambda: find("b"))
    orbit.parallel(
        lambda: orbit.branch(
            orbit.when(first.state == "lost", lambda: tell("c", "lost")),
            orbit.otherwise(lambda: tell("c", "found")),
        ),
        lambda: orbit.branch(
            orbit.when((first.state == "lost") & (second.state == "lost"), lambda: tell("d", "lost")),
            orbit.otherwise(lambda: tell("d", "found")),
        ),
    )


def test_the_nested_form_of_it_is_two_forks_in_a_row() -> None:
    assert sorted(node["kind"] for node in nodes(nested).values()).count("PARALLEL") == 2


@orbit.workflow("elsewhere.expense", version=1)
def expense(order: Order) -> str:
    made = report(order.customer)
    decision = DECISION.wait(match=made.report_id, timeout=30 * DAY, on_timeout="FAIL")

    def paid() -> str:
        pay(made.report_id)
        return "paid"

    return orbit.match(
        decision.verdict, {"approved": paid, "denied": lambda: "not paid", "unclear": lambda: "not paid"}
    )


def test_both_ends_of_an_expense_report_are_normal() -> None:
    found = nodes(expense)
    assert [node["outcome"] for node in found.values() if node["kind"] == "END"] == ["SUCCEEDED"]
    assert found["decision"]["match"] == {"ref": "report", "path": ["report_id"]}


def test_work_raced_by_a_timer_is_refused_by_name() -> None:
    assert "work cannot be raced by a timer" in str(refusal(lambda _order: orbit.after(DAY)))


def invoice(invoice: Invoice) -> str:
    def ask(turn: int) -> Any:
        tell(invoice.approver, f"round {turn}")
        key = orbit.text("{}-" + str(turn), invoice.invoice_id)
        return VERDICT.wait(match=key, timeout=DAY, on_timeout="FAIL")

    def archived() -> str:
        pay(invoice.invoice_id)
        return "paid"

    def again() -> str:
        tell("clerk", "please mend it")
        return orbit.branch(orbit.when(ask(2).approved, archived), orbit.otherwise(lambda: "discarded"))

    return orbit.branch(orbit.when(ask(1).approved, archived), orbit.otherwise(again))


def test_rework_is_unrolled_into_a_bounded_number_of_rounds() -> None:
    found = nodes(orbit.workflow("elsewhere.invoice", version=1)(invoice))
    keys = [found[key]["match"]["text"][-1] for key in ("verdict", "verdict_2")]
    assert keys == ["-1", "-2"]


def test_two_rounds_with_one_key_are_refused() -> None:
    def flow(order: Order) -> None:
        for _ in range(2):
            VERDICT.wait(match=order.order_id, timeout=DAY, on_timeout="FAIL")

    with pytest.raises(orbit.BuildError) as caught:
        orbit.workflow("elsewhere.same_key", version=1)(flow).compile()
    assert 'early="KEEP"' in str(caught.value) or "KEEP" in str(caught.value)
