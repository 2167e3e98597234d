"""Every workflow in files, modules, folders and JSON documents, compiled and checked."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbit_sdk.cli.findings import ERROR, Finding, of_build_error, of_diagnostics, of_form
from orbit_sdk.cli.json_places import json_places
from orbit_sdk.cli.modules import import_target, split_target, values_of
from orbit_sdk.errors import InvalidArgument, PayloadTooLarge
from orbit_sdk.values.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from orbit_sdk.builder import Workflow
    from orbit_sdk.check.diagnostics import Place
    from orbit_sdk.definition.models import Definition
    from orbit_sdk.handlers import Handler

__all__ = ["Loaded", "Source", "load"]

_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})


@dataclass(frozen=True, slots=True)
class Source:
    """One workflow as it was found. `definition` is None when it does not compile.

    `origin` names the file or module; `side` is the table of source places that is published with it.
    """

    origin: str
    id: str | None
    version: int | None
    definition: Definition | None
    digest: str | None
    side: dict[str, Any] | None
    findings: tuple[Finding, ...]
    workflow: Workflow[Any, Any] | None = None

    @property
    def name(self) -> str:
        return f"{self.id} version {self.version}" if self.id is not None else self.origin

    @property
    def ok(self) -> bool:
        return self.definition is not None and not any(found.is_error for found in self.findings)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything that was found in the targets, in their order; `left_out` were found and are not shown."""

    sources: tuple[Source, ...]
    handlers: tuple[Handler[..., Any], ...] = ()
    left_out: int = 0

    @property
    def found_any(self) -> bool:
        return bool(self.sources) or self.left_out > 0

    @property
    def findings(self) -> list[Finding]:
        return [found for source in self.sources for found in source.findings]

    @property
    def ok(self) -> bool:
        return all(source.ok for source in self.sources)


def load(targets: Sequence[str]) -> Loaded:
    """Find, compile and check; what is wrong becomes findings, never an exception.

    In a folder only files that mention the SDK and a workflow are imported.
    """
    sources: list[Source] = []
    handlers: dict[int, Handler[..., Any]] = {}
    seen: dict[int, object] = {}
    for target in targets:
        for part in _parts(target):
            if isinstance(part, Path):
                sources.append(_of_json(part))
            else:
                sources += _of_module(part, seen, handlers)
    return Loaded((*sources, *_twice(sources)), tuple(handlers.values()))


def _parts(target: str) -> Iterator[str | Path]:
    """JSON documents as paths, everything else as what to import."""
    path = Path(target)
    if path.is_dir():
        yield from _in_folder(path)
    elif path.suffix == ".json":
        yield path
    else:
        yield target


def _in_folder(folder: Path) -> Iterator[str | Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if any(part.startswith(".") or part in _SKIPPED for part in inside) or not path.is_file():
            continue
        if path.suffix == ".py" and _declares_workflows(path):
            yield str(path)
        elif path.suffix == ".json" and _looks_like_a_definition(path):
            yield path


def _declares_workflows(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return "orbit_sdk" in text and "workflow(" in text


def _looks_like_a_definition(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return '"schema_version"' in text and '"nodes"' in text


def _of_json(path: Path) -> Source:
    from orbit_sdk.check import check_definition
    from orbit_sdk.definition.models import definition_digest, read_definition

    file = str(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        return _failed(file, Finding("IMPORT", ERROR, f"cannot be read: {error.strerror}", None, file))
    try:
        definition = read_definition(data)
    except (InvalidArgument, PayloadTooLarge) as error:
        return _failed(file, *of_form(error, file, _text_of(data)))
    found = check_definition(definition)
    if found:  # places are looked for only when there is something to show
        found = check_definition(definition, side=json_places(_text_of(data), file))
    digest = definition_digest(definition)
    findings = tuple(of_diagnostics(found, file))
    return Source(file, definition.id, definition.version, definition, digest, None, findings)


def _text_of(data: bytes) -> str:
    """What can be shown of a document; one that is far too large is not looked through."""
    return data[: 2 * DEFAULT_LIMITS.document_bytes].decode(errors="replace")


def _of_module(target: str, seen: dict[int, object], handlers: dict[int, Any]) -> list[Source]:
    from orbit_sdk.builder import Workflow
    from orbit_sdk.handlers import BuildError, Handler

    name, attribute = split_target(target)
    try:
        values = list(values_of(import_target(name), attribute))
    except BuildError as error:
        return [_failed(name, *of_build_error(error))]
    except Exception as error:  # noqa: BLE001  # a module may raise anything; it is told like everything else
        return [_failed(name, _import_finding(name, error))]
    found: list[Source] = []
    for value in values:
        if isinstance(value, Handler):
            handlers[id(value)] = value
        elif isinstance(value, Workflow) and id(value) not in seen:
            seen[id(value)] = value
            found.append(_of_workflow(name, value))
    return found


def _of_workflow(origin: str, workflow: Workflow[Any, Any]) -> Source:
    from orbit_sdk.handlers import BuildError

    findings: list[Finding] = []
    try:
        compiled = workflow.compile()
    except BuildError as error:
        findings = of_build_error(error)
    except Exception as error:  # noqa: BLE001  # it is the author's function that runs
        findings = [_import_finding(origin, error, f"{workflow.id} raised ", _BUILT_ONCE)]
    else:
        side = {path: _side(place) for path, place in compiled.side.items()}
        return Source(
            origin,
            workflow.id,
            workflow.version,
            compiled.definition,
            compiled.digest,
            side,
            tuple(of_diagnostics(compiled.warnings, origin)),
            workflow,
        )
    return Source(origin, workflow.id, workflow.version, None, None, None, tuple(findings), workflow)


def _side(place: Place) -> dict[str, Any]:
    """Paths below the working folder are told from there: a server has no use for the rest."""
    try:
        file = str(Path(place.file).resolve().relative_to(Path.cwd()))
    except ValueError:
        file = Path(place.file).name
    return {"file": file, "line": place.line, "column": place.column}


def _failed(origin: str, *findings: Finding) -> Source:
    return Source(origin, None, None, None, None, None, findings)


_BUILT_ONCE = (
    "the function runs once, when it is compiled, with references instead of values: what needs values "
    "belongs into a handler"
)
_IMPORTED = "workflows are imported to be checked: what a module needs must be installed and at hand here"


def _import_finding(
    target: str, error: Exception, what: str = "cannot be imported: ", help_: str = _IMPORTED
) -> Finding:
    """The place is the author's innermost line, not the import machinery's."""
    from orbit_sdk.builder.options import option_problem

    if isinstance(error, SyntaxError):
        return Finding("SYNTAX", ERROR, error.msg, None, error.filename, error.lineno, error.offset)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    code, message = "IMPORT", f"{what}{said}"
    option = option_problem(error)
    if option is not None:
        code, message, help_ = "OPTION", *option
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    if not frames:
        return Finding(code, ERROR, message, help_, target)
    last = frames[-1]
    column = None if last.colno is None else last.colno + 1
    return Finding(code, ERROR, message, help_, last.filename, last.lineno, column)


def _is_theirs(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = Path(file)
    return "orbit_sdk" not in path.parts and "site-packages" not in path.parts and not _is_standard(path)


def _is_standard(path: Path) -> bool:
    return path.is_relative_to(Path(ast.__file__).parent)


def _twice(sources: Sequence[Source]) -> Iterator[Source]:
    """Two different workflows under one id and version."""
    first: dict[tuple[str, int], Source] = {}
    for source in sources:
        if source.id is None or source.version is None:
            continue
        known = first.setdefault((source.id, source.version), source)
        if known is not source and known.digest != source.digest:
            message = f"{source.name} is declared in {known.origin} and, differently, in {source.origin}"
            help_ = "give one of them another id or version"
            yield _failed(source.origin, Finding("WORKFLOW_TWICE", ERROR, message, help_, source.origin))
