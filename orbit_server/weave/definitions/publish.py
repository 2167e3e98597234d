"""Checking and publishing a document: the same rules as offline, with this server's own limits."""

from __future__ import annotations

from dataclasses import dataclass

from orbit_sdk.check import check_definition
from orbit_sdk.check.diagnostics import Diagnostic, Severity
from orbit_sdk.definition.models import Definition, load_definition
from orbit_sdk.definition.nodes import PollNode, TaskNode
from orbit_sdk.engine.plan import compile_plan
from orbit_sdk.errors import Detail, InvalidArgument, PayloadTooLarge
from orbit_sdk.values.canonical import canonical_json, digest_of_text
from orbit_sdk.values.ids import Id, IdSeed
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import Limits
from orbit_server.storage.database import Database
from orbit_server.weave.definitions.catalog import Catalog, Compiled
from orbit_server.weave.definitions.commands import PublishDefinition, Published
from orbit_server.weave.definitions.rows import definition_key


@dataclass(frozen=True, slots=True)
class Checked:
    """A document that was read, its canonical text and digest, and every finding of the checks."""

    definition: Definition
    text: str
    digest: str
    findings: tuple[Diagnostic, ...]

    @property
    def errors(self) -> list[Diagnostic]:
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]


def check_document(document: Json, limits: Limits) -> Checked:
    """Read and check a document. Raises InvalidArgument when it is not a definition, PayloadTooLarge above
    the limit; what the checks find is in the answer.
    """
    definition = load_definition(document)
    text = definition.canonical().decode()
    size = len(text.encode())
    if size > limits.document_bytes:
        raise PayloadTooLarge(
            f"the definition has {size} bytes; the limit is {limits.document_bytes}",
            [Detail("definition", "split the workflow, or shorten its texts")],
        )
    return Checked(definition, text, digest_of_text(text), check_definition(definition, limits))


def refuse_errors(checked: Checked) -> None:
    """Raises InvalidArgument with every error found."""
    if checked.errors:
        raise InvalidArgument(
            f"the definition has {len(checked.errors)} error(s)",
            [Detail(finding.json_path, f"{finding.code}: {finding.message}") for finding in checked.errors],
        )


def handlers_text(definition: Definition) -> str:
    """The handlers that steps of a definition run, as the canonical JSON of their sorted keys."""
    used = {node.handler for node in definition.nodes.values() if isinstance(node, TaskNode | PollNode)}
    return canonical_json([*sorted(used)])


async def publish(  # noqa: PLR0913  # one keyword per part of the request
    database: Database,
    catalog: Catalog,
    checked: Checked,
    *,
    namespace_id: Id,
    side: Json,
    current: bool,
    actor: str,
    seed: IdSeed,
) -> Published:
    """Publish a checked document. Raises InvalidArgument with every error found, Conflict when this version
    has another content.
    """
    refuse_errors(checked)
    definition = checked.definition
    plan = compile_plan(definition)
    published = await database.committer.submit(
        PublishDefinition(
            namespace_id=namespace_id,
            definition_id=definition.id,
            version=definition.version,
            document=checked.text,
            document_digest=checked.digest,
            side_table=None if side is None else canonical_json(side),
            queues=canonical_json(list(plan.queues)),
            handlers=handlers_text(definition),
            current=current,
            actor=actor,
            seed=seed,
        )
    )
    key = definition_key(namespace_id, definition.id, definition.version)
    catalog.keep(Compiled(key, definition, checked.digest, plan, plan.queues))
    return published
