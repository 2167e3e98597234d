"""Results, leases and evidence on real rows."""

from __future__ import annotations

from typing import Any

import pytest

from orbit_server.pulse.sweeps import sweep_leases
from orbit_server.pulse.tasks.attempts import Held, MarkEffect, RecordResult, RenewLeases, Settled
from orbit_server.pulse.tasks.commands import Basis, CancelTask, RetryTask
from orbit_server.pulse.tasks.lifecycle import AttemptState, Recovery, Said, TaskState
from orbit_server.pulse.tasks.queries import held_by_session, links_of
from orbit_server.pulse.tasks.reconnect import BindAttempts, Bound, ReturnOffers
from orbit_server.pulse.tasks.reports import Told, report_of
from tests.storage.pulse.house import SPACE, WORK, House, held


async def test_a_late_success_is_evidence_and_a_later_failure_is_for_a_person(house: House) -> None:
    task_id = await house.submit()
    (first,) = await house.claimed(house.worker())
    await house.lease_ran_out(task_id)
    await sweep_leases(house.database, await house.database.now(), house.times)
    await house.set_task(task_id, due_at=0)
    await house.swept_due()
    (second,) = await house.claimed(house.worker())
    assert second.effect_key == first.effect_key
    told = await house.report(first, Said.SUCCEEDED, result={"paid": 1})
    again = await house.report(first, Said.SUCCEEDED, result={"paid": 1})
    assert (told.settled, again.settled) == (Settled.EVIDENCE, Settled.EVIDENCE)
    await house.report(second, Said.FINAL, code="REFUSED")
    task = await house.task(task_id)
    assert (task.state, task.error_code) == (TaskState.NEEDS_REVIEW, "LATE_SUCCESS")
    (evidence,) = await house.evidence(task_id)
    assert (evidence.kind, evidence.body) == ("LATE_SUCCEEDED", '{"paid":1}')
    assert [one.outcome for one in await house.attempts(task_id)] == [Said.LEASE_LOST, Said.FINAL]


async def test_a_late_success_does_not_stop_a_read_only_failure(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.READ_ONLY)
    (first,) = await house.claimed(house.worker())
    await house.lease_ran_out(task_id)
    # No sweeper has run: the lease is over all the same.
    told = await house.report(first, Said.SUCCEEDED, result=1)
    assert told.settled is Settled.EVIDENCE
    await house.set_task(task_id, due_at=0)
    await house.swept_due()
    (second,) = await house.claimed(house.worker())
    await house.report(second, Said.FINAL, code="REFUSED")
    assert (await house.task(task_id)).state is TaskState.FAILED


async def test_a_renewed_lease_is_never_rescued_however_old_the_attempt(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE, attempt_timeout_ms=3_600_000)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    now = await house.database.now()
    renewed = await house.renew(worker, offer)
    assert renewed is not None
    assert renewed.lease_ms == 2_000
    report = await sweep_leases(house.database, now, house.times)
    assert report.seen == 0
    assert (await house.task(task_id)).state is TaskState.RUNNING


@pytest.mark.parametrize(
    ("recovery", "state"),
    [
        (Recovery.CONSERVATIVE, TaskState.NEEDS_REVIEW),
        (Recovery.VERIFIABLE, TaskState.VERIFYING),
        (Recovery.IDEMPOTENT, TaskState.RETRY_WAIT),
    ],
)
async def test_a_worker_that_dies_after_its_effect(
    house: House, recovery: Recovery, state: TaskState
) -> None:
    task_id = await house.submit(recovery=recovery, can_verify=recovery is Recovery.VERIFIABLE)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    await house.lease_ran_out(task_id)
    report = await sweep_leases(house.database, await house.database.now(), house.times)
    assert (report.seen, report.moved, report.failed) == (1, 1, 0)
    assert (await house.task(task_id)).state is state


async def test_a_settled_task_stays_settled_under_renewals_and_other_reports(house: House) -> None:
    task_id = await house.submit()
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.report(offer, Said.SUCCEEDED, result=1)
    before = await house.task(task_id)
    assert await house.renew(worker, offer) is None
    assert (await house.report(offer, Said.SUCCEEDED, result=1)).settled is Settled.ACCEPTED
    assert (await house.report(offer, Said.EXCEPTION, message="SIGTERM")).settled is Settled.EVIDENCE
    assert await house.task(task_id) == before
    (evidence,) = await house.evidence(task_id)
    assert evidence.contradiction


async def test_a_verification_runs_where_it_is_known_how_and_settles_the_task(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.VERIFIABLE, can_verify=True)
    plain = house.worker()
    (offer,) = await house.claimed(plain)
    await house.start(plain, offer)
    await house.report(offer, Said.NEEDS_VERIFICATION)
    assert await house.claimed(plain) == []
    house.dispatcher.remove(plain.facts.id)
    able = house.worker(can_verify=frozenset({WORK}))
    (asked,) = await house.claimed(able)
    assert (asked.kind, asked.asked_generation, asked.started) == ("VERIFY", 1, True)
    await house.report(asked, Said.HAPPENED, result={"id": 7}, asked_generation=1)
    assert (await house.task(task_id)).state is TaskState.SUCCEEDED


async def test_an_unusable_result_is_kept_in_part_and_goes_to_a_person(house: House) -> None:
    task_id = await house.submit()
    (offer,) = await house.claimed(house.worker())
    report = report_of(Told(Said.SUCCEEDED, "x" * 10_000), result_bytes=1_000)
    await house.database.committer.submit(RecordResult(SPACE, held(offer), report, task_id))
    task = await house.task(task_id)
    assert (task.state, task.error_code) == (TaskState.NEEDS_REVIEW, "INVALID_RESULT")
    (evidence,) = await house.evidence(task_id)
    assert evidence.body is not None
    assert len(evidence.body) < 5_000


async def test_a_report_is_refused_when_the_attempt_is_unknown(house: House) -> None:
    task_id = await house.submit()
    (offer,) = await house.claimed(house.worker())
    report = report_of(Told(Said.SUCCEEDED, 1))
    for named in (
        (SPACE, held(offer).__class__(task_id, offer.attempt_id, 9)),
        (SPACE, held(offer).__class__("0" * 32, offer.attempt_id, 1)),
        ("0" * 32, held(offer)),
    ):
        answer = await house.database.committer.submit(RecordResult(*named, report, task_id))
        assert answer.settled is Settled.REFUSED
    assert (await house.task(task_id)).state is TaskState.RUNNING


async def test_a_result_of_what_was_never_started_is_evidence(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    (offer,) = await house.claimed(house.worker())
    for _ in range(2):
        assert (await house.report(offer, Said.SUCCEEDED, result=1)).settled is Settled.EVIDENCE
    assert len(await house.evidence(task_id)) == 1
    assert (await house.report(offer, Said.DISCARDED)).settled is Settled.ACCEPTED
    assert (await house.task(task_id)).state is TaskState.READY


async def test_a_mark_is_stored_before_it_is_granted(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.MARKED)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    order = MarkEffect(SPACE, worker.facts.id, worker.facts.nonce, held(offer))
    assert await house.database.committer.submit(order) == "LOST"
    await house.start(worker, offer)
    assert await house.database.committer.submit(order) == "GRANTED"
    assert await house.database.committer.submit(order) == "GRANTED"
    (attempt,) = await house.attempts(task_id)
    assert attempt.marked_at is not None
    stranger = MarkEffect("0" * 32, worker.facts.id, worker.facts.nonce, held(offer))
    assert await house.database.committer.submit(stranger) == "LOST"


# --- sessions ----------------------------------------------------------------------------------------------


async def bound(
    house: House, nonce: str, *listed: Held, session: str = "6" * 32, unlisted: tuple[Held, ...] = ()
) -> dict[str, Bound]:
    command = BindAttempts(SPACE, session, nonce, listed, unlisted, house.times)
    return dict(await house.database.committer.submit(command))


async def test_a_reconnect_settles_what_the_worker_still_holds(house: House) -> None:
    worker = house.worker()
    goes_on = await house.submit()
    (running,) = await house.claimed(worker)
    await house.submit()
    (reported,) = await house.claimed(worker)
    await house.report(reported, Said.SUCCEEDED, result=1)
    lost_id = await house.submit()
    (lost,) = await house.claimed(worker)
    await house.lease_ran_out(lost_id)
    await sweep_leases(house.database, await house.database.now(), house.times)
    offered_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    (offered,) = await house.claimed(worker)
    listed = tuple(held(one) for one in (running, reported, lost, offered))
    answers = await bound(house, worker.facts.nonce, *listed)
    assert [answers[one.attempt_id].answer for one in listed] == ["CONTINUE", "SETTLED", "STOP", "STOP"]
    assert 0 < answers[running.attempt_id].lease_ms <= 2_000
    assert (await house.task(offered_id)).state is TaskState.READY
    (attempt,) = await house.attempts(goes_on)
    assert attempt.session_id == "6" * 32
    still = await house.database.read(lambda conn: held_by_session(conn, "6" * 32))
    assert [one.id for one in still] == [running.attempt_id]


async def test_a_stranger_cannot_take_over_an_attempt(house: House) -> None:
    await house.submit()
    (running,) = await house.claimed(house.worker())
    answers = await bound(house, "0" * 32, held(running), held(running).__class__("0" * 32, "1" * 32, 1))
    assert {one.answer for one in answers.values()} == {"STOP"}


async def test_a_bound_attempt_whose_lease_is_over_is_stopped(house: House) -> None:
    task_id = await house.submit()
    worker = house.worker()
    (running,) = await house.claimed(worker)
    await house.lease_ran_out(task_id)
    answers = await bound(house, worker.facts.nonce, held(running))
    assert answers[running.attempt_id].answer == "STOP"


async def test_a_push_that_never_arrived_is_given_back_uncharged(house: House) -> None:
    task_id = await house.submit()
    worker = house.worker()
    (pushed,) = await house.claimed(worker)
    await bound(house, "0" * 32, unlisted=(held(pushed),))
    assert (await house.task(task_id)).state is TaskState.RUNNING
    await bound(house, worker.facts.nonce, unlisted=(held(pushed), held(pushed)))
    task = await house.task(task_id)
    assert (task.state, task.attempts_used, task.uncharged) == (TaskState.READY, 0, 1)


async def test_a_closing_session_returns_its_offers_and_keeps_what_it_started(house: House) -> None:
    worker = house.worker()
    offered_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    (offered,) = await house.claimed(worker)
    started_id = await house.submit()
    (started,) = await house.claimed(worker)
    order = ReturnOffers(SPACE, worker.facts.id, offers=(held(offered), held(started)))
    assert await house.database.committer.submit(order) == 1
    assert await house.database.committer.submit(order) == 0
    assert (await house.task(offered_id)).state is TaskState.READY
    assert (await house.task(started_id)).state is TaskState.RUNNING
    (attempt,) = await house.attempts(offered_id)
    assert (attempt.state, attempt.outcome, attempt.charged) == (AttemptState.CLOSED, Said.NOT_STARTED, False)
    unsent = ReturnOffers(SPACE, worker.facts.id, undelivered=(held(started),))
    assert await house.database.committer.submit(unsent) == 1
    assert (await house.task(started_id)).state is TaskState.READY


async def test_an_attempt_leads_to_its_task_and_workflow(house: House) -> None:
    task_id = await house.submit(instance_id="3" * 32, activation_id="4" * 32, step_key="pay")
    (offer,) = await house.claimed(house.worker())
    links = await house.database.read(lambda conn: links_of(conn, [offer.attempt_id]))
    link = links[offer.attempt_id]
    assert (link.task_id, link.instance_id, link.generation) == (task_id, "3" * 32, 1)


async def test_renewals_name_what_is_lost(house: House) -> None:
    await house.submit()
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    items = (held(offer), held(offer).__class__("0" * 32, "9" * 32, 1))
    answers = await house.database.committer.submit(RenewLeases(SPACE, worker.facts.id, items, house.times))
    assert answers["9" * 32] is None
    assert answers[offer.attempt_id] is not None


async def test_a_late_success_warns_the_next_activation_of_its_step(house: House) -> None:
    flow: dict[str, Any] = {
        "instance_id": "3" * 32,
        "activation_id": "4" * 32,
        "step_key": "pay",
        "recovery": Recovery.CONSERVATIVE,
    }
    first_id = await house.submit(**flow)
    worker = house.worker()
    (first,) = await house.claimed(worker)
    await house.start(worker, first)
    await house.report(first, Said.EXCEPTION, message="boom")
    again_id = await house.submit(**flow)
    other_round = await house.submit(**flow, round=2)
    assert (await house.report(first, Said.SUCCEEDED, result=1)).settled is Settled.EVIDENCE
    assert (await house.task(first_id)).late_success
    assert not (await house.task(other_round)).late_success
    offers = await house.claimed(worker, 2)
    assert [offer.task_id for offer in offers] == [other_round]
    task = await house.task(again_id)
    assert (task.state, task.error_code) == (TaskState.NEEDS_REVIEW, "LATE_SUCCESS")


async def test_a_late_success_warns_the_retry_of_its_task(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.CONSERVATIVE)
    worker = house.worker()
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    await house.report(offer, Said.EXCEPTION, message="boom")
    by = house.by(basis=Basis.ACCEPTED_RISK, evidence='"nobody answers"')
    revision = (await house.task(task_id)).revision
    answer = await house.database.committer.submit(RetryTask(None, SPACE, task_id, revision, by, 1))
    await house.report(offer, Said.SUCCEEDED, result=1)
    assert (await house.task(str(answer["task_id"]))).late_success
    (evidence,) = await house.evidence(task_id)
    assert evidence.contradiction


async def test_a_cancel_does_not_stop_the_verification_it_waits_for(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.VERIFIABLE, can_verify=True)
    worker = house.worker(can_verify=frozenset({WORK}))
    (offer,) = await house.claimed(worker)
    await house.start(worker, offer)
    await house.report(offer, Said.NEEDS_VERIFICATION)
    (asked,) = await house.claimed(worker)
    await house.database.committer.submit(CancelTask(None, SPACE, task_id, house.by()))
    renewed = await house.renew(worker, asked)
    assert renewed is not None
    assert not renewed.cancel_requested
    assert worker.cancels == []
    await house.report(asked, Said.CANNOT_HAPPEN_ANY_MORE, asked_generation=1)
    assert (await house.task(task_id)).state is TaskState.CANCELLED


async def test_a_verification_is_not_given_to_who_cannot_verify(house: House) -> None:
    task_id = await house.submit(recovery=Recovery.VERIFIABLE, can_verify=True)
    worker = house.worker(slots=3)
    await house.dispatcher.run_once()
    (offer,) = worker.offers
    await house.start(worker, offer)
    await house.report(offer, Said.NEEDS_VERIFICATION)
    assert len(worker.offers) == 1
    assert (await house.task(task_id)).attempt_id is None
