"""Starting an instance: one idempotent command per request or batch item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orbit_sdk.definition.evaluate import MissingFact
from orbit_sdk.definition.expressions import FactKey
from orbit_sdk.definition.nodes import PollNode, TaskNode
from orbit_sdk.engine import decide
from orbit_sdk.engine.commands import StartInstance
from orbit_sdk.engine.decision import Decision, Missing, Refusal
from orbit_sdk.errors import (
    Detail,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    error_of,
)
from orbit_sdk.values.canonical import canonical_json
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.instants import to_rfc3339
from orbit_sdk.values.json_strict import Json
from orbit_server.storage.book import Book
from orbit_server.storage.commands import CommandKey, Done, Needs, Outcome, Refused
from orbit_server.weave.definitions.catalog import Compiled
from orbit_server.weave.definitions.rows import (
    DEFINITIONS,
    DRAFTS,
    POINTER_READS,
    definition_key,
    pointer_key,
)
from orbit_server.weave.state.apply import apply_start
from orbit_server.weave.state.rows import INPUTS, InstanceInput
from orbit_server.weave.state.running import Weave
from orbit_server.weave.state.views import summary_of


@dataclass(frozen=True, slots=True)
class StartWorkflow:
    """Start one instance, bound for life to one definition version. `version` None: the current one,
    resolved here. `draft`: the key of a draft, which is taken instead of a published version.

    `key` is the request's identity; `labels` are canonical JSON or None. The answer is the summary as JSON.
    """

    key: CommandKey
    instance_id: Id
    namespace_id: Id
    definition_id: str
    version: int | None
    input: Json
    started_by: str
    seed: IdSeed
    weave: Weave
    business_key: str | None = None
    labels: str | None = None
    parameters_version: int = 1
    effect_root: Id | None = None
    """What effect keys are made from; None: the instance itself."""
    origin: Json = None
    """Of a restart: what it was restarted from."""
    priority_max: int | None = None
    """The highest priority that whoever starts it may give to work; None: any."""
    draft: Id | None = None

    @property
    def lane(self) -> str:
        return self.instance_id

    def needs(self) -> Needs:
        if self.draft is not None:
            return {DRAFTS.name: (self.draft,)}
        if self.version is not None:
            return {DEFINITIONS.name: (self._row_key(self.version),)}
        return {POINTER_READS.name: (pointer_key(self.namespace_id, self.definition_id),)}

    def more(self, book: Book) -> Needs:
        if self.draft is not None or self.version is not None:
            return {}
        pointer = book.get(POINTER_READS, pointer_key(self.namespace_id, self.definition_id))
        if pointer is None or pointer.current_version is None:
            return {}
        return {DEFINITIONS.name: (self._row_key(pointer.current_version),)}

    def consider(self, book: Book) -> Decision | Refused:
        """What the engine decides now; nothing is written."""
        compiled = self._compiled(book)
        require_priority(compiled, self.priority_max)
        problems = compiled.plan.input_problems(self.input)
        if problems:
            details = [problem.detail("input") for problem in problems]
            return Refused(InvalidArgument("the input does not fit the workflow's input type", details))
        order = StartInstance(
            instance_id=self.instance_id,
            namespace_id=self.namespace_id,
            input=self.input,
            seed=self.seed,
            effect_root=self.effect_root or self.instance_id,
            business_key=self.business_key,
        )
        answer = decide(compiled.plan, None, order, book.now, self._facts(book.now), self.weave.limits)
        if isinstance(answer, Refusal):
            return Refused(error_of(answer.code, answer.message, answer.details))
        if isinstance(answer, Missing):
            raise Internal(f"a start needs facts that do not exist: {sorted(map(str, answer.facts))}")
        return answer

    def decide(self, book: Book) -> Outcome[Mapping[str, Json]]:
        answer = self.consider(book)
        if isinstance(answer, Refused):
            return answer
        text = canonical_json(self.input)
        head = apply_start(
            book, answer, definition_key=self._compiled(book).key, parameters_version=self.parameters_version
        )
        book.insert(
            INPUTS,
            InstanceInput(
                instance_id=self.instance_id,
                input=text,
                digest=self.key.digest,
                labels=self.labels,
                started_by=self.started_by,
                origin=None if self.origin is None else canonical_json(self.origin),
                idempotency_id=self.key.id,
                policy=None,
            ),
        )
        return Done(summary_of(head), subject_id=self.instance_id)

    def _compiled(self, book: Book) -> Compiled:
        if self.draft is not None:
            return self._drafted(book, self.draft)
        return resolved(book, self.weave, self.namespace_id, (self.definition_id, self.version))

    def _drafted(self, book: Book, key: Id) -> Compiled:
        row = book.get(DRAFTS, key)
        if row is None:
            raise NotFound(f"there is no such draft of {self.definition_id!r} (any more)")
        compiled = self.weave.compiled(key)
        if row.used_at is None:  # from now on it belongs to its workflows
            book.change(DRAFTS, row, replace(row, used_at=book.now))
        return compiled

    def _row_key(self, version: int) -> Id:
        return definition_key(self.namespace_id, self.definition_id, version)

    def _facts(self, now: int) -> _StartFacts:
        return _StartFacts(
            {
                "workflow_id": self.instance_id,
                "business_key": self.business_key,
                "started_at": to_rfc3339(now),
                "started_by": self.started_by,
                "origin": self.origin,
            }
        )


def resolved(book: Book, weave: Weave, namespace_id: Id, wanted: tuple[str, int | None]) -> Compiled:
    """The definition (id, version or None for the current one) that a start now would be bound to.

    Raises:
        NotFound, FailedPrecondition: there is none that takes starts.
        NotInMemory, MissingRow: the whole command has to be run again.
    """
    definition_id, version = wanted
    if version is None:
        pointer = book.get(POINTER_READS, pointer_key(namespace_id, definition_id))
        if pointer is None:
            raise NotFound(f"no definition {definition_id!r} is published")
        version = pointer.current_version
        if version is None:
            reason = f"name one (the latest is {pointer.latest_version}), or set the current one"
            raise FailedPrecondition(f"{definition_id!r} has no current version", [Detail("version", reason)])
    row = book.get(DEFINITIONS, definition_key(namespace_id, definition_id, version))
    if row is None:
        raise NotFound(f"{definition_id!r} version {version} is not published")
    if row.retired_at is not None:
        raise FailedPrecondition(f"{definition_id!r} version {version} is retired and takes no new starts")
    return weave.compiled(row.id)


def require_priority(compiled: Compiled, most: int | None) -> None:
    """Raises PermissionDenied naming a step with a higher priority than `most` (None: any will do)."""
    if most is None:
        return
    definition = compiled.definition
    for key, node in definition.nodes.items():
        if isinstance(node, TaskNode | PollNode) and node.priority > most:
            raise PermissionDenied(
                f"step {key} of {definition.id!r} version {definition.version} has priority {node.priority}; "
                f"this credential starts work with a priority of at most {most}",
                [Detail("definition_id", f"publish a version whose steps have at most priority {most}")],
            )


@dataclass(frozen=True, slots=True)
class _StartFacts:
    """Before the first step only the instance's own data exist (the input is part of the command)."""

    instance: dict[str, Json]

    def get(self, key: FactKey, /) -> Json:
        if key.source == "instance":
            return self.instance
        raise MissingFact(key)
