"""Orders of people that no workflow is needed for: definitions, starts, restarts, standalone tasks."""

from __future__ import annotations

from typing import Any

from orbit_sdk.values.canonical import canonical_json, digest
from orbit_server.pulse.tasks.commands import Basis, By, CancelTask, ResolveReview, RetryTask, SubmitTask
from orbit_server.pulse.tasks.decide.stop import Verdict
from orbit_server.pulse.tasks.lifecycle import Recovery
from orbit_server.pulse.tasks.operations import NewTask
from orbit_server.storage.commands import CommandKey
from orbit_server.weave.definitions.commands import RetireVersion, SetCurrentVersion
from orbit_server.weave.instances.restart import Effects, RestartWorkflow
from orbit_server.weave.service import send
from tests.storage.races.scene import Case, Command
from tests.storage.weave.paper import NAMESPACE, Paper

# --- definitions -------------------------------------------------------------------------------------------


def own_definition(case: Case, version: int = 1, title: str = "") -> dict[str, Any]:
    """A definition that belongs to this repetition alone."""
    more = {"title": title} if title else {}
    return {**case.document, "id": f"{case.document['id']}.d{case.number}", "version": version, **more}


def publish(version: int = 1, title: str = "", *, current: bool = False) -> Command:
    async def run(case: Case, node: Paper) -> str:
        made = await node.publish(own_definition(case, version, title), current=current)
        return "created" if made.created else "known"

    return run


def set_current(version: int) -> Command:
    async def run(case: Case, node: Paper) -> str:
        order = SetCurrentVersion(
            NAMESPACE, own_definition(case)["id"], version, "operator", "a test", node.seed()
        )
        return f"current {(await node.database.committer.submit(order)).current_version}"

    return run


def retire(version: int) -> Command:
    async def run(case: Case, node: Paper) -> str:
        order = RetireVersion(
            NAMESPACE, own_definition(case)["id"], version, "operator", "a test", node.seed()
        )
        await node.database.committer.submit(order)
        return "retired"

    return run


async def versions(case: Case) -> str:
    """The versions with what is remarkable about each, the current one, and how many acts were recorded."""
    name = own_definition(case)["id"]
    found = await case.one.rows(
        "SELECT version, retired_at FROM definitions WHERE definition_id = :d ORDER BY version", d=name
    )
    current = await case.one.rows(
        "SELECT current_version FROM definition_pointers WHERE definition_id = :d", d=name
    )
    words = [f"{row[0]}{' retired' if row[1] else ''}" for row in found]
    return f"versions {', '.join(words)}; current {current[0][0]}"


# --- starts ------------------------------------------------------------------------------------------------


def start(key: str, given: Any = 1, version: int | None = None, *, own: bool = False) -> Command:
    """`own`: of the definition that belongs to this repetition."""

    async def run(case: Case, node: Paper) -> str:
        definition = own_definition(case)["id"] if own else case.document["id"]
        instance = await node.start(
            given, key=f"{case.number}-{key}", definition_id=definition, version=version
        )
        case.notes.setdefault("made", []).append(instance)
        return "started"

    return run


def restart(effects: Effects, key: str) -> Command:
    async def run(case: Case, node: Paper) -> str:
        seed = node.seed()
        order = RestartWorkflow(
            key=CommandKey(NAMESPACE, "workflow.restart", f"{case.number}-{key}", digest(effects)),
            instance_id=seed.nth(999_999),
            namespace_id=NAMESPACE,
            origin_id=case.instance,
            effects=effects,
            version=1,
            definition_id=case.document["id"],
            started_by="operator",
            reason="a test",
            seed=seed,
            weave=node.weave,
        )
        case.notes.setdefault("made", []).append((await send(node.database, node.weave, order))["id"])
        return "restarted"

    return run


async def made(case: Case) -> str:
    """How many instances came of it, and their versions."""
    ids = sorted(set(case.notes.get("made", [])))
    rows = [(await case.one.show(one)).row for one in ids]
    return f"{len(ids)} of version {', '.join(sorted(str(row.definition_version) for row in rows))}"


# --- standalone tasks --------------------------------------------------------------------------------------


async def new_task(case: Case, recovery: Recovery = Recovery.CONSERVATIVE, **more: Any) -> None:
    case.task = str((await _submit(case, case.one, None, recovery, 1, **more))["task_id"])


async def _submit(
    case: Case, node: Paper, key: CommandKey | None, recovery: Recovery, given: Any, **more: Any
) -> Any:
    parameters = canonical_json({"n": given})
    new = NewTask(
        id=node.seed().nth(0),
        namespace_id=NAMESPACE,
        queue="races",
        handler="work",
        handler_version=1,
        parameters=parameters,
        parameters_digest=digest(parameters),
        effect_key=f"effect-{case.number}",
        recovery=recovery,
    )
    return await node.database.committer.submit(SubmitTask(key, new, **more))


def submit(key: str, given: Any = 1) -> Command:
    async def run(case: Case, node: Paper) -> str:
        named = CommandKey(NAMESPACE, "task.submit", f"{case.number}-{key}", digest(given))
        answer = await _submit(case, node, named, Recovery.IDEMPOTENT, given)
        case.notes.setdefault("tasks", set()).add(answer["task_id"])
        return "accepted"

    return run


async def tasks_made(case: Case) -> str:
    return f"{len(case.notes.get('tasks', ()))} task(s)"


def _by(node: Paper) -> By:
    return By("operator", "a test", node.seed(), basis=Basis.PROVEN, evidence='"seen"')


async def cancel_task(case: Case, node: Paper) -> str:
    order = CancelTask(None, NAMESPACE, case.task, _by(node))
    return str((await node.database.committer.submit(order))["state"])


async def retry_task(case: Case, node: Paper) -> str:
    revision = case.notes["revision"]
    await node.database.committer.submit(RetryTask(None, NAMESPACE, case.task, revision, _by(node), 3))
    return "retried"


def resolve_task(verdict: Verdict) -> Command:
    async def run(case: Case, node: Paper) -> str:
        order = ResolveReview(
            None, NAMESPACE, case.task, case.notes["revision"], verdict, _by(node), "1", digest(1), "NO"
        )
        return str((await node.database.committer.submit(order))["state"])

    return run
