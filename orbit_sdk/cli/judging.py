"""What a repository thinks of findings: accepted ones, other severities, and versions that are taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orbit_sdk.cli.config import Config
from orbit_sdk.cli.findings import Finding, of_diagnostics
from orbit_sdk.cli.ignores import Ignores
from orbit_sdk.cli.sources import Loaded, Source

if TYPE_CHECKING:
    from orbit_sdk.check.diagnostics import Place
    from orbit_sdk.cli.committed import Committed

__all__ = ["changed_only", "judged", "side_of", "with_versions"]


def judged(loaded: Loaded, config: Config) -> Loaded:
    """The findings without those that are accepted, each with the severity that the repository gives it."""
    ignores = Ignores()
    kept = [replace(each, findings=ignores.kept(each.findings, each.workflow)) for each in loaded.sources]
    for found in ignores.findings():
        index = next((n for n, each in enumerate(kept) if _is_of(each, found)), 0)
        kept[index] = replace(kept[index], findings=(*kept[index].findings, found))
    sources = tuple(replace(each, findings=tuple(_weighed(each.findings, config))) for each in kept)
    return replace(loaded, sources=sources)


def with_versions(loaded: Loaded, known: Committed) -> Loaded:
    """With a finding for every content that changed while its version did not."""
    from orbit_sdk.check import check_version

    sources: list[Source] = []
    for source in loaded.sources:
        if source.definition is None or source.id is None:
            sources.append(source)
            continue
        found = check_version(source.definition, known.digests(source.id), side_of(source))
        sources.append(replace(source, findings=(*source.findings, *of_diagnostics(found, source.origin))))
    return replace(loaded, sources=tuple(sources))


def changed_only(loaded: Loaded, known: Committed) -> Loaded:
    """Without the workflows that are as they were. What does not compile has changed."""
    sources = tuple(
        source
        for source in loaded.sources
        if source.id is None
        or source.version is None
        or source.digest is None
        or known.digests(source.id).get(source.version) != source.digest
    )
    return replace(loaded, sources=sources, left_out=len(loaded.sources) - len(sources))


def side_of(source: Source) -> dict[str, Place] | None:
    """The places of a source, as checks want them."""
    from orbit_sdk.check.diagnostics import Place

    if source.side is None:
        return None
    return {path: Place(at["file"], at["line"], at["column"]) for path, at in source.side.items()}


def _is_of(source: Source, found: Finding) -> bool:
    if found.file is None:
        return False
    # The origin of a module is its name, so its file is asked of the function.
    written = source.origin if source.workflow is None else source.workflow.function.__code__.co_filename
    return Path(written).resolve() == Path(found.file).resolve()


def _weighed(findings: tuple[Finding, ...], config: Config) -> Iterator[Finding]:
    for found in findings:
        severity = config.severities.get(found.code)
        if found.is_error or severity is None:
            yield found
        elif severity != "off":
            yield replace(found, severity=severity)
