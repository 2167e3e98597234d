"""Workflows that people know from elsewhere, written in the language and compiled."""

from datetime import timedelta
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

import orbit_sdk as orbit

DAY = timedelta(days=1)


class Case(BaseModel):
    case_id: str
    account: str
    amount: int


class Answer(BaseModel):
    agreed: bool


class Doctor(BaseModel):
    doctor_id: str


class Charge(StrEnum):
    PAID = "paid"
    FAILED = "failed"


class Receipt(BaseModel):
    state: Charge


class Paper(BaseModel):
    text: str


@orbit.handler("known.store", version=1)
def store(ctx: orbit.TaskContext, case: Case) -> None: ...


@orbit.handler("known.assign", version=1)
def assign(ctx: orbit.TaskContext, case: Case) -> Doctor:
    return Doctor(doctor_id="d")


@orbit.handler("known.book", version=1)
def book(ctx: orbit.TaskContext, case: Case, doctor_id: str) -> None: ...


@orbit.handler("known.ask", version=1)
def ask(ctx: orbit.TaskContext, case_id: str, of: str = "") -> None: ...


@orbit.handler("known.mark", version=1)
def mark(ctx: orbit.TaskContext, case_id: str, state: str) -> None: ...


@orbit.handler("known.withdraw", version=1)
def withdraw(ctx: orbit.TaskContext, account: str, amount: int) -> None: ...


@orbit.handler("known.deposit", version=1, errors=("REFUSED",))
def deposit(ctx: orbit.TaskContext, account: str, amount: int) -> Receipt:
    return Receipt(state=Charge.PAID)


@orbit.handler("known.refund", version=1)
def refund(ctx: orbit.TaskContext, account: str, amount: int) -> Receipt:
    return Receipt(state=Charge.FAILED)


@orbit.handler("known.finish", version=1)
def finish(ctx: orbit.TaskContext, papers: list[Paper]) -> None: ...


APPLICATION = orbit.Signal("known.application", Paper)
SCORES = orbit.Signal("known.scores", Paper)
LETTER = orbit.Signal("known.letter", Paper)
PAYMENT = orbit.Signal("known.payment", Receipt)
SHIPMENT = orbit.Signal("known.shipment", Receipt)
APPROVAL = orbit.Signal("known.approval", Answer)


@orbit.workflow("known.papers", version=1)
def three_papers(case: Case) -> None:
    papers = orbit.parallel(
        lambda: APPLICATION.wait(match=case.case_id, timeout=DAY, on_timeout="FAIL"),
        lambda: SCORES.wait(match=case.case_id, timeout=DAY, on_timeout="FAIL"),
        lambda: LETTER.wait(match=case.case_id, timeout=DAY, on_timeout="FAIL"),
    )
    finish(list(papers))


@orbit.workflow("known.patient", version=1, on_failure="FAIL")
def patient(case: Case) -> None:
    retry = orbit.Retry(attempts=10, backoff=timedelta(seconds=3), factor=1, max_backoff=timedelta(seconds=3))
    store.options(retry=retry)(case)
    doctor = assign.options(retry=retry)(case)
    book.options(retry=retry)(case, doctor.doctor_id)


@orbit.workflow("known.checkout", version=1)
def checkout(case: Case) -> str:
    mark(case.case_id, "pending")
    ask(case.case_id, "payment")
    payment = PAYMENT.wait(match=case.case_id, timeout=DAY, on_timeout="REVIEW")

    def ship() -> str:
        mark(case.case_id, "paid")
        ask(case.case_id, "shipment")
        shipment = SHIPMENT.wait(match=case.case_id, timeout=DAY, on_timeout="REVIEW")
        return orbit.match(
            shipment.state,
            {Charge.PAID: lambda: "shipped", Charge.FAILED: lambda: "not shipped"},
        )

    def unpaid() -> str:
        mark(case.case_id, "unpaid")
        return "unpaid"

    return orbit.match(payment.state, {Charge.PAID: ship, Charge.FAILED: unpaid})


@orbit.workflow("known.approvers", version=1)
def three_approvers(case: Case) -> None:
    def approver(name: str) -> Any:
        def arm() -> None:
            ask(case.case_id, name)
            answer = APPROVAL.wait(
                match=orbit.text("{}-" + name, case.case_id), timeout=DAY, on_timeout="FAIL"
            )
            orbit.branch(
                orbit.when(answer.agreed, lambda: None),
                orbit.otherwise(lambda: orbit.fail("REFUSED", f"{name} refused")),
            )

        return arm

    orbit.parallel(approver("ann"), approver("bob"), approver("cid"))


@orbit.workflow("known.diamond", version=1)
def diamond(case: Case) -> Doctor:
    first = assign(case)
    _left, right = orbit.parallel(lambda: ask(first.doctor_id), lambda: assign(case))
    return right


@orbit.workflow("known.transfer", version=1)
def transfer(case: Case) -> Receipt:
    withdraw(case.account, case.amount)
    return deposit.options(
        on_failure=lambda failure: orbit.match(
            failure.code,
            {"REFUSED": lambda: refund(case.account, case.amount)},
            otherwise=lambda: refund(case.account, case.amount),
        )
    )("other", case.amount)


@orbit.workflow("known.optional", version=1)
def optional_in_one_arm(case: Case) -> None:
    def lower() -> None:
        orbit.branch(
            orbit.when(case.amount > 5, lambda: mark(case.case_id, "large")), orbit.otherwise(lambda: None)
        )

    orbit.parallel(lambda: store(case), lower)


def nodes(workflow: orbit.Workflow[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = workflow.compile().definition.to_json()["nodes"]
    return found


def test_three_papers_may_come_in_any_order() -> None:
    found = nodes(three_papers)
    assert found["application_and_scores_and_letter"]["arms"].keys() == {"application", "scores", "letter"}
    assert found["finish"]["input"]["papers"] == {
        "array": [{"ref": "application"}, {"ref": "scores"}, {"ref": "letter"}]
    }


def test_a_fixed_pause_between_ten_attempts_is_written() -> None:
    retry = nodes(patient)["assign"]["retry"]
    assert (retry["max_attempts"], retry["backoff_ms"], retry["factor_percent"], retry["max_backoff_ms"]) == (
        10,
        3000,
        100,
        3000,
    )


def test_two_call_backs_of_one_shape_are_two_signals() -> None:
    found = nodes(checkout)
    assert (found["payment"]["signal"], found["shipment"]["signal"]) == ("known.payment", "known.shipment")
    assert found["done"]["output"] == {"ref": "by_state_value"}


def test_any_refusal_fails_all_approvers() -> None:
    found = nodes(three_approvers)
    assert found["ask_and_ask_2_and_ask_3"]["on_arm_failure"] == "STOP_OTHERS"
    assert [key for key, node in found.items() if node.get("outcome") == "FAILED"] == [
        "refused",
        "refused_2",
        "refused_3",
    ]


def test_a_diamond_meets_once() -> None:
    found = nodes(diamond)
    assert [key for key, node in found.items() if node["kind"] == "JOIN"] == ["ask_and_assign_2_done"]
    assert found["done"]["output"] == {"ref": "assign_2"}


def test_a_refund_stands_at_the_failure_exit() -> None:
    found = nodes(transfer)
    assert found["deposit"]["on_failure"] == {"next": "by_code"}
    assert found["withdraw"]["on_failure"] == "REVIEW"


def test_an_arm_may_hold_something_optional() -> None:
    found = nodes(optional_in_one_arm)
    assert found["if_amount"]["otherwise"] == found["mark"]["next"] == found["store"]["next"]
    assert found["store"]["next"] == "store_and_if_amount_done"
