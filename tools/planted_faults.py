"""Plants known mistakes, one at a time, into a copy of the sources, and says which tests find each.

    python tools/planted_faults.py                  all of them
    python tools/planted_faults.py catch-on-unknown retried-unknown

A check that cannot fail is worth nothing: every mistake here is one that somebody could make, and every one
has to be found by the property tests, the races, the crash tests or the soak. Exit code 1 when one is not
found, or can no longer be planted because the sources have changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
COPIED: Final = ("orbit_sdk", "orbit_server", "tests", "tools", "schemas", "examples", "pyproject.toml")
TEST_SECONDS: Final = 420

ENGINE: Final = "tests/property/test_engine.py"
MACHINE: Final = "tests/property/pulse/test_task_machine.py"
KILLS: Final = "tests/crash/test_kills.py"
WORKERS: Final = "tests/crash/test_workers.py"
SERVERS: Final = "tests/crash/test_servers.py"
PAIRS: Final = "tests/crash/test_pairs.py"
RACES: Final = "tests/storage/test_races.py"
PULSE_RACES: Final = "tests/storage/pulse/test_races.py"
SOAK: Final = "tests/soak/test_soak.py"


@dataclass(frozen=True, slots=True)
class Edit:
    """`before` must be in the file exactly once."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """`tests` are tried in order until one finds it: pytest targets, the quickest first."""

    name: str
    meaning: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


MISTAKES: Final = (
    Mistake(
        "no-fencing",
        "the result of an attempt that was given up counts like any other",
        (
            Edit(
                "orbit_server/pulse/tasks/attempts.py",
                "        if attempt.state is AttemptState.RUNNING and task.attempt_id == attempt.id:\n"
                "            if not starting.lease_over(task, book.now, self.times):",
                "        if task.settled_at is None and task.state is not TaskState.NEEDS_REVIEW:\n"
                "            if True:",
            ),
            Edit(
                "orbit_server/pulse/tasks/attempts.py",
                "from orbit_server.pulse.tasks.lifecycle import AttemptState, Said",
                "from orbit_server.pulse.tasks.lifecycle import AttemptState, Said, TaskState",
            ),
        ),
        ("tests/storage/pulse/test_results.py", WORKERS, SOAK),
    ),
    Mistake(
        "stale-report",
        "a report counts however often it comes, and whatever came after it",
        (
            Edit(
                "orbit_sdk/engine/tasks.py",
                "if report.task_id != step.task_id or report.source_revision <= step.task_revision:",
                "if report.task_id != step.task_id:",
            ),
        ),
        (ENGINE, KILLS, SOAK),
    ),
    Mistake(
        "impatient-sweeper",
        "the sweeper takes every lease that it looks at for lost: renewals and skew do not count",
        (
            Edit(
                "orbit_server/pulse/tasks/decide/finish.py",
                "    if not lease_over(task, ground.now, ground.times):\n        return None\n",
                "",
            ),
            Edit(
                "orbit_server/pulse/sweeps.py",
                "    limit = at - times.lease_skew_ms * 1000 - 1",
                "    limit = at + times.lease_ms * 1000",
            ),
        ),
        (MACHINE, WORKERS, SOAK),
    ),
    Mistake(
        "catch-on-unknown",
        "an effect that is unknown goes down the failure exit",
        (
            Edit(
                "orbit_sdk/engine/tasks.py",
                "        case TaskPhase.FAILED | TaskPhase.EXPIRED:\n",
                "        case TaskPhase.FAILED | TaskPhase.EXPIRED | TaskPhase.NEEDS_REVIEW:\n",
            ),
        ),
        (ENGINE, KILLS, SOAK),
    ),
    Mistake(
        "start-through-the-gate",
        "an offer made before a pause may start after it",
        (
            Edit(
                "orbit_server/pulse/tasks/decide/start.py",
                "    if closed and task.state is TaskState.OFFERED and attempt is not None:",
                "    if closed and task.state is TaskState.OFFERED and attempt is None:",
            ),
            Edit(
                "orbit_server/pulse/tasks/decide/start.py", "        if task.gate:\n", "        if False:\n"
            ),
        ),
        (MACHINE, SOAK),
    ),
    Mistake(
        "cancel-without-effect-check",
        "a cancelled task is CANCELLED even where an attempt may have had its effect",
        (
            Edit(
                "orbit_server/pulse/tasks/decide/stop.py",
                "    if may_have_effect(task):\n"
                "        after = to_review(task, now, ErrorCode.EFFECT_UNKNOWN, cancel_requested=True)",
                "    if False:\n"
                "        after = to_review(task, now, ErrorCode.EFFECT_UNKNOWN, cancel_requested=True)",
            ),
        ),
        (MACHINE, SOAK),
    ),
    Mistake(
        "eager-join",
        "a join goes on with its first arm",
        (
            Edit(
                "orbit_sdk/engine/advance.py",
                "    if all(state is ArmState.DONE for state in states):",
                "    if any(state is ArmState.DONE for state in states):",
            ),
        ),
        (ENGINE, KILLS, SOAK),
    ),
    Mistake(
        "deaf-inbox",
        "what was stored but told to nobody is never looked for",
        (
            Edit(
                "orbit_server/weave/sweeps/inbox.py",
                '    query = query.where(inbox.c.state == "PENDING")',
                '    query = query.where(inbox.c.state == "NOWHERE")',
            ),
        ),
        (f"{SERVERS}::test_what_was_stored_but_told_to_nobody_is_found_by_the_next_server", SOAK),
    ),
    Mistake(
        "forgiving-keys",
        "an idempotency key answers whatever is asked under it",
        (
            Edit(
                "orbit_server/storage/idempotency.py",
                "    if row.digest != key.digest:",
                "    if row.digest is None:",
            ),
        ),
        ("tests/storage/pulse/test_people.py", SOAK),
    ),
    Mistake(
        "retried-unknown",
        "a lost attempt is tried again unless its handler can verify",
        (
            Edit(
                "orbit_server/pulse/tasks/decide/finish.py",
                "    if closed.recovery is Recovery.IDEMPOTENT or not closed.effect_possible:",
                "    if closed.recovery is not Recovery.VERIFIABLE or not closed.effect_possible:",
            ),
            Edit(
                "orbit_server/pulse/tasks/decide/start.py",
                "    return level not in REPEATABLE and may_have_effect(task)",
                "    return level not in REPEATABLE and task.late_success",
            ),
        ),
        (MACHINE, WORKERS, SOAK),
    ),
    Mistake(
        "answer-about-another",
        "a verification's answer counts whichever attempt it is about",
        (
            Edit(
                "orbit_server/pulse/tasks/decide/finish.py",
                "    if about is not None and about != attempt.asked_generation:",
                "    if about is None and about != attempt.asked_generation:",
            ),
        ),
        (MACHINE, SOAK),
    ),
    Mistake(
        "look-instead-of-touch",
        "decisions on MySQL read the rows that they stand on without holding them",
        (
            Edit(
                "orbit_server/storage/kinds.py",
                "        if self._touchable",
                "        if False and self._touchable",
            ),
        ),
        (RACES, PULSE_RACES, PAIRS),
    ),
    Mistake(
        "generations-anew",
        "a step that is run again counts its generations from one, under the effect key it had",
        (
            Edit(
                "orbit_server/weave/state/apply.py",
                "        generation=max((task.generation for task in earlier), default=0),",
                "        generation=0,",
            ),
        ),
        ("tests/storage/weave/test_flow.py", KILLS, SOAK),
    ),
    Mistake(
        "resume-from-nothing",
        "a resume does not load what the stored checkpoint reads",
        (
            Edit(
                "orbit_server/weave/state/running.py",
                "State(replace(to_instance(row), paused=False))",
                "State(to_instance(row))",
            ),
        ),
        ("tests/storage/weave/test_flow.py", SOAK),
    ),
)


def plant(mistake: Mistake, copy: Path) -> str | None:
    """Change the copy; what stands in the way, if anything does."""
    for edit in mistake.edits:
        path = copy / edit.path
        text = path.read_text()
        if text.count(edit.before) != 1:
            return f"{edit.path} has {text.count(edit.before)} places that read {edit.before.strip()!r}"
        path.write_text(text.replace(edit.before, edit.after))
    return None


def fails(copy: Path, target: str) -> bool:
    """Whether a test of this target fails on the copy. A run that hangs is a failure too."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    process = subprocess.Popen(
        [*command, target],
        cwd=copy,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        code = process.wait(TEST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    if code not in (0, 1, 2):
        raise RuntimeError(f"{target} could not be run: pytest ended with {code}")
    return code != 0


def hunt(mistake: Mistake, folder: Path, sound: dict[str, bool]) -> tuple[str | None, str]:
    """The test that finds it, and a sentence. None when nothing does.

    `sound` remembers which targets pass on the unchanged sources: what fails there finds nothing.
    """
    clean, copy = folder / "clean", folder / mistake.name
    shutil.copytree(clean, copy)
    trouble = plant(mistake, copy)
    if trouble is not None:
        return None, f"cannot be planted: {trouble}"
    unsound = []
    for target in mistake.tests:
        if not fails(copy, target):
            continue
        if target not in sound:
            sound[target] = not fails(clean, target)
        if sound[target]:
            return target, f"found by {target}"
        unsound.append(target)
    broken = f" ({', '.join(unsound)} fails without it, too)" if unsound else ""
    return None, f"NOT FOUND by {', '.join(mistake.tests)}{broken}"


def copy_sources(target: Path) -> None:
    """One state of the sources for the whole run."""
    target.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / name)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these mistakes")
    wanted = parser.parse_args().names
    unknown = set(wanted) - {one.name for one in MISTAKES}
    if unknown:
        parser.error(f"no such mistake: {', '.join(sorted(unknown))}")
    chosen = [one for one in MISTAKES if not wanted or one.name in wanted]
    found = 0
    with tempfile.TemporaryDirectory(prefix="planted-", ignore_cleanup_errors=True) as folder:
        copy_sources(Path(folder) / "clean")
        sound: dict[str, bool] = {}
        for mistake in chosen:
            began = time.monotonic()
            target, sentence = hunt(mistake, Path(folder), sound)
            found += target is not None
            seconds = time.monotonic() - began
            print(f"{mistake.name:28} {sentence} ({seconds:.0f} s)  [{mistake.meaning}]", flush=True)
    print(f"{found} of {len(chosen)} planted mistakes found")
    return 0 if found == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
