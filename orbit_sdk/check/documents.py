"""Checks around the definition itself: whether a document is one, and whether its version is free."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orbit_sdk.check.checking import check_definition, errors_of
from orbit_sdk.check.diagnostics import Diagnostic, Path, SideTable, order_of
from orbit_sdk.check.rule import Finding, rule
from orbit_sdk.definition.models import Definition, definition_digest, load_definition
from orbit_sdk.errors import InvalidArgument
from orbit_sdk.values.json_strict import Json
from orbit_sdk.values.limits import DEFAULT_LIMITS, Limits

_PART = re.compile(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([^.\[]+)')


@rule(
    "FORM_INVALID",
    remedy="Correct the field; the reference of the definition lists every field and its form.",
)
def form_invalid(error: InvalidArgument) -> Iterator[Finding]:
    """The document is not of the form of a definition."""
    for detail in error.details:
        yield Finding(path_of(detail.field), f"{detail.field} {detail.reason}.")


@dataclass(frozen=True, slots=True)
class _Publication:
    definition: Definition
    digests: Mapping[int, str]


@rule("VERSION_TAKEN", remedy="Give the changed definition the next version number.")
def version_taken(publication: _Publication) -> Iterator[Finding]:
    """Another content has been published under the same version."""
    definition, digests = publication.definition, publication.digests
    known = digests.get(definition.version)
    if known is not None and known != definition_digest(definition):
        following = max(digests) + 1
        yield Finding(
            ("version",),
            f"Version {definition.version} of {definition.id} exists with another content.",
            help=f"Give the changed definition version {following}.",
        )


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """What a document is: its definition, unless its form is invalid, and all findings."""

    definition: Definition | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_sound(self) -> bool:
        return not errors_of(self.diagnostics)


def check_document(
    document: Json, limits: Limits = DEFAULT_LIMITS, side: SideTable | None = None
) -> CheckedDocument:
    """Load parsed JSON and check it; what is wrong with its form is a finding like any other."""
    try:
        definition = load_definition(document)
    except InvalidArgument as error:
        return CheckedDocument(None, tuple(sorted(form_invalid.run(error, side), key=order_of)))
    return CheckedDocument(definition, check_definition(definition, limits, side))


def check_version(
    definition: Definition, digests: Mapping[int, str], side: SideTable | None = None
) -> tuple[Diagnostic, ...]:
    """Whether the version is free or has this very content; `digests` holds what is known, by version."""
    return tuple(version_taken.run(_Publication(definition, digests), side))


def path_of(field: str) -> Path:
    """The parts of a path as `field_path` writes it."""
    if field == "$":
        return ()
    parts: list[str | int] = []
    for index, quoted, plain in _PART.findall(field):
        parts.append(int(index) if index else json.loads(quoted) if quoted else plain)
    return tuple(parts)
