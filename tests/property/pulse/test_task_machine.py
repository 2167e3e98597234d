"""Random histories of one task against a model of what really happens outside.

Workers here are honest but unlucky: they get lost with their effect done, not done, or still to be done by an
attempt that nobody hears of any more. The task must never repeat an effect that was not declared repeatable,
never call something failed that may have happened, and never change once it is settled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from orbit_server.pulse.tasks.decide.finish import Ground, Report, finish, late, lease_ended
from orbit_server.pulse.tasks.decide.move import Move
from orbit_server.pulse.tasks.decide.policy import RetryPolicy
from orbit_server.pulse.tasks.decide.start import (
    Claimant,
    Started,
    claim,
    due,
    gate,
    lease_over,
    mark,
    renew,
    start,
    withdraw,
)
from orbit_server.pulse.tasks.decide.stop import cancel, deadline
from orbit_server.pulse.tasks.decide.submit import NewTask, submit
from orbit_server.pulse.tasks.lifecycle import (
    LEGAL_MOVES,
    REPEATABLE,
    TERMINAL,
    AttemptKind,
    AttemptState,
    Recovery,
    Said,
    TaskState,
)
from orbit_server.pulse.tasks.records import Attempt, Task
from orbit_server.pulse.times import PulseTimes

SECOND = 1_000_000
TIMES = PulseTimes(verify_within_ms=60_000)
POLICY = RetryPolicy(1_000, 200, 20_000, 20)
ASKER = ("5" * 32, "7" * 32)
DEFINITE = frozenset({TaskState.FAILED, TaskState.EXPIRED, TaskState.CANCELLED})


@dataclass
class Outside:
    """What an attempt did in the world: `done`, and whether it may still do it unheard."""

    done: bool = False
    loose: bool = False


class TaskMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000_000_000
        self.attempts: dict[str, Attempt] = {}
        self.outside: dict[str, Outside] = {}
        self.settled: Task | None = None
        self.late_told = False
        self.paused = False

    @initialize(
        recovery=st.sampled_from(Recovery),
        can_verify=st.booleans(),
        attempts=st.integers(1, 3),
        delay=st.sampled_from([0, 0, 0, 3]),
        latest=st.none() | st.integers(1, 30),
        total=st.none() | st.integers(1, 90),
    )
    def accepted(
        self,
        recovery: Recovery,
        can_verify: bool,
        attempts: int,
        delay: int,
        latest: int | None,
        total: int | None,
    ) -> None:
        self.task = submit(
            NewTask(
                "a" * 32, "1" * 32, "q", "h", 1, "{}", "d", "e",
                recovery=recovery,
                can_verify=can_verify,
                policy=POLICY,
                attempts_max=attempts,
                attempt_timeout_ms=40_000,
                due_at=self.now + delay * SECOND,
                latest_start_at=None if latest is None else self.now + latest * SECOND,
                total_deadline_at=None if total is None else self.now + total * SECOND,
            ),
            self.now,
        )[0]  # fmt: skip

    # --- what can happen ---

    @rule(seconds=st.sampled_from([0, 1, 5, 31, 45]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * SECOND + 1

    @precondition(lambda self: not self.attempts)
    @rule(luck=st.integers(0, 9))
    def cancelled_early(self, luck: int) -> None:
        if luck == 0:
            self.cancelled()

    @rule()
    def time_is_looked_at(self) -> None:
        for move in (due(self.task, self.now), deadline(self.task, self.now)):
            if move is not None:
                self.apply(move)
                return

    @rule(level=st.sampled_from(Recovery), one_step=st.booleans())
    def claimed(self, level: Recovery, one_step: bool) -> None:
        who = Claimant(ASKER[0], "1" * 32, ASKER[1], "w", "b", level, can_verify=False, one_step=one_step)
        attempt_id = f"{self.task.generation + 1:032x}"
        move = claim(self.task, self.attempts.values(), who, attempt_id, self.now, TIMES)
        if move is None:
            return
        if move.attempt is not None and move.attempt.state is AttemptState.RUNNING:
            self.may_start(move.attempt)
        self.apply(move)

    @precondition(lambda self: self.open_attempt() is not None)
    @rule()
    def start_asked_for(self) -> None:
        attempt = self.must_open()
        granted_before = attempt.state is AttemptState.RUNNING
        move, answer = start(self.task, attempt, ASKER, self.now, TIMES)
        if isinstance(answer, Started) and not granted_before:
            assert not (attempt.kind is AttemptKind.RUN and self.task.cancel_requested)
            self.may_start(attempt)
        if move is not None:
            self.apply(move)

    @precondition(lambda self: self.open_attempt() is None and self.settled is None)
    @rule(level=st.none() | st.sampled_from(Recovery), one_step=st.booleans())
    def taken_as_soon_as_possible(self, level: Recovery | None, one_step: bool) -> None:
        """The ordinary course, as one step, so that histories get further. Most workers declare as much."""
        self.gated(closed=False)
        self.now = max(self.now, self.task.due_at or 0)
        self.time_is_looked_at()
        self.claimed(level or self.task.recovery, one_step)
        if self.open_attempt() is not None:
            self.start_asked_for()

    @precondition(lambda self: self.runs())
    @rule(
        done=st.booleans(),
        word=st.sampled_from([Said.EXCEPTION, Said.RETRYABLE, Said.NEEDS_VERIFICATION]),
        unwanted=st.booleans(),
    )
    def interrupted(self, done: bool, word: Said, unwanted: bool) -> None:
        """`unwanted`: a cancel comes before anything else does."""
        if done:
            self.effect_made()
        self.reported(Report(word, error="{}", digest="u"))
        if unwanted:
            self.cancelled()

    @precondition(lambda self: self.runs())
    @rule()
    def lease_renewed(self) -> None:
        attempt = self.must_open()
        after = renew(self.task, attempt, ASKER[0], self.now, TIMES)
        if after is not None:
            assert after.lease_until is not None
            assert after.lease_until <= (attempt.limit_at or 0)
            self.task = after

    @precondition(lambda self: self.runs())
    @rule()
    def effect_made(self) -> None:
        attempt = self.must_open()
        if attempt.kind is AttemptKind.VERIFY or attempt.recovery is Recovery.READ_ONLY:
            return
        if attempt.recovery is Recovery.MARKED:
            marked, answer = mark(self.task, attempt, ASKER, self.now)
            if answer != "GRANTED":
                return
            if marked is not None:
                self.attempts[attempt.id] = attempt = marked
        self.outside[attempt.id].done = True

    @precondition(lambda self: self.runs())
    @rule(word=st.sampled_from([Said.EXCEPTION, Said.NEEDS_VERIFICATION, Said.NEEDS_PERSON, Said.RETRYABLE]))
    def gave_up_unknowing(self, word: Said) -> None:
        self.reported(Report(word, error="{}", digest="u"))

    @precondition(lambda self: self.runs() and not self.any_done())
    @rule(word=st.sampled_from([Said.RETRYABLE, Said.FINAL, Said.CANCELLED, Said.HAND_BACK, Said.DISCARDED]))
    def gave_up_knowing(self, word: Said) -> None:
        if word is Said.CANCELLED and self.task.state is not TaskState.CANCELLING:
            return
        if word is Said.FINAL:
            # "The whole operation definitely failed" speaks for earlier attempts of the same effect key, too.
            self.fence()
        self.reported(Report(word, error="{}", digest="k", effect_unknown=False))

    @precondition(lambda self: self.runs() and self.must_open().kind is AttemptKind.RUN)
    @rule()
    def succeeded(self) -> None:
        attempt = self.must_open()
        if attempt.recovery is Recovery.MARKED and attempt.marked_at is None:
            return
        self.outside[attempt.id].done = attempt.recovery is not Recovery.READ_ONLY
        self.reported(Report(Said.SUCCEEDED, result="{}", digest="s"))

    @precondition(lambda self: self.runs() and self.must_open().kind is AttemptKind.VERIFY)
    @rule(sure=st.booleans())
    def verified(self, sure: bool) -> None:
        if not sure:
            self.reported(Report(Said.CANNOT_TELL, error="{}", digest="c"))
        elif self.any_done():
            self.reported(Report(Said.HAPPENED, result="{}", digest="h"))
        else:
            self.fence()
            self.reported(Report(Said.CANNOT_HAPPEN_ANY_MORE, error="{}", digest="n"))

    @precondition(lambda self: self.runs() and self.must_open().kind is AttemptKind.VERIFY)
    @rule()
    def answered_about_another(self) -> None:
        """Nobody has fenced anything: taken for an answer, it would let the effect happen again."""
        about = (self.must_open().asked_generation or 0) + 1
        report = Report(Said.CANNOT_HAPPEN_ANY_MORE, error="{}", digest="o", asked_generation=about)
        self.reported(report)

    @precondition(lambda self: self.open_attempt() is not None)
    @rule(still_there=st.booleans())
    def lost(self, still_there: bool) -> None:
        attempt = self.must_open()
        move = lease_ended(self.task, attempt, self.ground())
        if move is not None:
            self.outside[attempt.id].loose = still_there and self.can_have_effect(attempt)
            self.apply(move)

    @rule()
    def unheard_effect(self) -> None:
        for outside in self.outside.values():
            if outside.loose:
                outside.done, outside.loose = True, False
                return

    @rule(data=st.data())
    def late_success_told(self, data: st.DataObject) -> None:
        done = [
            one
            for one in self.attempts.values()
            if one.state is AttemptState.CLOSED and self.outside[one.id].done and one.kind is AttemptKind.RUN
        ]
        if done:
            attempt = data.draw(st.sampled_from(done))
            move = late(self.task, attempt, Report(Said.SUCCEEDED, result="{}", digest="s"), None)
            if move is not None:
                assert move.task.state is self.task.state
                self.task = move.task
                if self.settled is not None:
                    self.settled = replace(self.settled, late_success=move.task.late_success)

    @precondition(lambda self: self.open_attempt() is not None)
    @rule()
    def offer_returned(self) -> None:
        attempt = self.must_open()
        if attempt.state is AttemptState.OFFERED:
            self.apply(withdraw(self.task, attempt, self.now, TIMES))

    @precondition(lambda self: bool(self.attempts))
    @rule()
    def cancelled(self) -> None:
        done = cancel(self.task, self.open_attempt(), self.now)
        if done.move is not None:
            self.apply(done.move)

    @rule(closed=st.booleans())
    def gated(self, closed: bool) -> None:
        self.paused = closed
        move = gate(self.task, self.open_attempt(), closed, self.now)
        if move is not None:
            self.apply(move)

    # --- what must hold ---

    @invariant()
    def a_settled_task_never_changes(self) -> None:
        if hasattr(self, "task") and self.settled is not None:
            assert self.task == self.settled

    @invariant()
    def one_attempt_at_most_is_open_and_it_is_the_tasks(self) -> None:
        if not hasattr(self, "task"):
            return
        still_open = [one for one in self.attempts.values() if one.state is not AttemptState.CLOSED]
        assert [one.id for one in still_open] == ([self.task.attempt_id] if self.task.attempt_id else [])
        assert (self.task.lease_until is not None) == bool(still_open)
        generations = [one.generation for one in self.attempts.values()]
        assert generations == sorted(set(generations))

    @invariant()
    def no_more_attempts_than_accepted(self) -> None:
        if not hasattr(self, "task"):
            return
        runs = [one for one in self.attempts.values() if one.kind is AttemptKind.RUN]
        assert sum(one.charged for one in runs) == self.task.attempts_used <= self.task.attempts_max
        assert sum(one.started_at is not None for one in runs) <= self.task.attempts_max + 5

    @invariant()
    def nothing_is_called_failed_that_happened_or_may_happen(self) -> None:
        if hasattr(self, "task") and self.task.state in DEFINITE:
            assert not self.any_done(), self.task
            assert not any(one.loose for one in self.outside.values()), self.task

    @invariant()
    def something_will_happen_by_itself_unless_a_person_is_asked(self) -> None:
        if not hasattr(self, "task"):
            return
        task = self.task
        if task.state in TERMINAL or task.state is TaskState.NEEDS_REVIEW:
            assert (task.due_at, task.deadline_at, task.lease_until, task.blocked) == (None, None, None, 0)
        else:
            claimable = task.blocked == 0 or task.gate
            assert task.due_at is not None or task.lease_until is not None or claimable

    # --- inside ---

    def ground(self) -> Ground:
        return Ground(self.now, POLICY, TIMES)

    def open_attempt(self) -> Attempt | None:
        return self.attempts.get(self.task.attempt_id or "")

    def must_open(self) -> Attempt:
        attempt = self.open_attempt()
        assert attempt is not None
        return attempt

    def runs(self) -> bool:
        attempt = self.open_attempt()
        return attempt is not None and attempt.state is AttemptState.RUNNING

    def any_done(self) -> bool:
        return any(one.done for one in self.outside.values())

    def fence(self) -> None:
        for one in self.outside.values():
            one.loose = False

    def can_have_effect(self, attempt: Attempt) -> bool:
        if attempt.kind is AttemptKind.VERIFY or attempt.started_at is None:
            return False
        if attempt.recovery is Recovery.MARKED:
            return attempt.marked_at is not None
        return attempt.recovery is not Recovery.READ_ONLY

    def may_start(self, attempt: Attempt) -> None:
        """A start is being granted: not behind a closed gate, and no effect is repeated by it."""
        assert not (self.paused and attempt.kind is AttemptKind.RUN), "started behind a closed gate"
        if attempt.kind is AttemptKind.RUN and attempt.recovery not in REPEATABLE:
            assert not self.any_done()
            assert not any(one.loose for one in self.outside.values())

    def reported(self, report: Report) -> None:
        attempt = self.must_open()
        if lease_over(self.task, self.now, TIMES):
            return
        self.apply(finish(self.task, attempt, report, self.ground()))

    def apply(self, move: Move) -> None:
        before, after = self.task, move.task
        assert after.state is before.state or after.state in LEGAL_MOVES[before.state]
        assert after.generation >= before.generation
        self.task = after
        if move.attempt is not None:
            self.attempts[move.attempt.id] = move.attempt
            self.outside.setdefault(move.attempt.id, Outside())
        if after.state in TERMINAL:
            self.settled = after


TaskMachine.TestCase.settings = settings(max_examples=300, stateful_step_count=40)
TestTaskMachine = TaskMachine.TestCase


# --- long histories ----------------------------------------------------------------------------------------

WORDS = (Said.EXCEPTION, Said.RETRYABLE, Said.NEEDS_VERIFICATION)


def walk(seed: int, steps: int = 60) -> TaskMachine:
    """A history in which the ordinary course is likely and trouble common; it follows from the seed alone."""
    chance = Random(seed)
    machine = TaskMachine()
    level = chance.choice(list(Recovery))
    machine.accepted(
        level,
        chance.random() < 0.5,
        chance.randint(1, 3),
        chance.choice([0, 3]),
        chance.choice([None, None, 30]),
        chance.choice([None, None, 90]),
    )
    for _ in range(steps):
        if machine.settled is not None and chance.random() < 0.5:
            break
        one_step(machine, chance, level)
        for check in INVARIANTS:
            check(machine)
    return machine


def one_step(machine: TaskMachine, chance: Random, level: Recovery) -> None:
    luck = chance.random()
    if luck < 0.06:
        machine.cancelled()
    elif luck < 0.12:
        machine.gated(closed=chance.random() < 0.5)
    elif luck < 0.22:
        machine.time_passes(chance.choice([0, 1, 5, 31, 45]))
    elif luck < 0.3:
        machine.time_is_looked_at()
    elif luck < 0.34:
        machine.unheard_effect()
    elif machine.open_attempt() is not None:
        work(machine, chance, luck)
    elif machine.settled is None and luck < 0.85:
        machine.taken_as_soon_as_possible(level, chance.random() < 0.5)
    else:
        machine.claimed(chance.choice(list(Recovery)), chance.random() < 0.5)


def work(machine: TaskMachine, chance: Random, luck: float) -> None:
    """What may become of an open attempt; `luck` lies between 0.34 and 1."""
    if not machine.runs():
        chance.choice([machine.start_asked_for, machine.start_asked_for, machine.offer_returned])()
    elif luck < 0.5:
        machine.lost(chance.random() < 0.5)
    elif machine.must_open().kind is AttemptKind.VERIFY:
        machine.verified(chance.random() < 0.7) if luck < 0.9 else machine.answered_about_another()
    elif luck < 0.8:
        machine.interrupted(chance.random() < 0.6, chance.choice(WORDS), unwanted=chance.random() < 0.1)
    elif luck < 0.9 and not machine.any_done():
        machine.gave_up_knowing(chance.choice([Said.RETRYABLE, Said.FINAL, Said.HAND_BACK]))
    elif luck < 0.95:
        machine.effect_made()
    else:
        machine.succeeded()


INVARIANTS = (
    TaskMachine.a_settled_task_never_changes,
    TaskMachine.one_attempt_at_most_is_open_and_it_is_the_tasks,
    TaskMachine.no_more_attempts_than_accepted,
    TaskMachine.nothing_is_called_failed_that_happened_or_may_happen,
    TaskMachine.something_will_happen_by_itself_unless_a_person_is_asked,
)


def test_long_histories_keep_every_rule() -> None:
    ends = set()
    for seed in range(3_000):
        try:
            ends.add(walk(seed).task.state)
        except AssertionError as error:
            raise AssertionError(f"the history of seed {seed} breaks a rule: {error}") from error
    assert ends >= TERMINAL | {TaskState.NEEDS_REVIEW}
