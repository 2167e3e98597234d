"""Definitions as they were: committed JSON of a git revision, files, or what a server holds.

Only documents are read. Code of another revision never runs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orbit_sdk.cli.config import Config
from orbit_sdk.cli.output import WrongUse
from orbit_sdk.errors import InvalidArgument

if TYPE_CHECKING:
    from orbit_sdk.definition.models import Definition

__all__ = ["AGAINST_HELP", "Committed", "committed"]

AGAINST_HELP = "What to compare with: git:REVISION, a file or folder of JSON, or the address of a server."

_GIT = "git:"
_MARK = b'"schema_version"'


class Committed:
    """What is known, by workflow id and version."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._known: dict[str, dict[int, Definition]] = {}
        for each in definitions:
            self._known.setdefault(each.id, {})[each.version] = each

    def digests(self, id_: str) -> Mapping[int, str]:
        """The digest of every known version."""
        from orbit_sdk.definition.models import definition_digest

        return {version: definition_digest(each) for version, each in self._known.get(id_, {}).items()}

    def latest(self, id_: str) -> Definition | None:
        """The highest known version."""
        versions = self._known.get(id_, {})
        return versions[max(versions)] if versions else None

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._known)


def committed(text: str, config: Config, ids: Iterable[str]) -> Committed:
    """What `text` names; of a server only the workflows `ids`. Raises InvalidArgument, Unavailable.

    A revision is searched in the `output` folder of the configuration; without one in the whole repository,
    where documents that are no definitions are left out.
    """
    if text.startswith(_GIT):
        documents = _of_git(text.removeprefix(_GIT), config)
        return Committed(_loaded(documents, strict=config.output is not None))
    if text.startswith(("http://", "https://")):
        return Committed(_of_server(text, ids))
    path = Path(text)
    if not path.exists():
        raise WrongUse(f"there is no {text}: give git:REVISION, a file or folder, or an address")
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    return Committed(_loaded(((str(file), file.read_bytes()) for file in files), strict=True))


def _loaded(documents: Iterable[tuple[str, bytes]], *, strict: bool) -> Iterator[Definition]:
    from orbit_sdk.definition.models import read_definition

    for name, data in documents:
        if _MARK not in data or b'"nodes"' not in data:
            continue
        try:
            yield read_definition(data)
        except InvalidArgument as error:
            if strict:
                what = f"{name} is no definition that can be compared with"
                raise WrongUse(what, error.details) from None


def _of_git(revision: str, config: Config) -> Iterator[tuple[str, bytes]]:
    if not revision or revision.startswith("-"):
        raise WrongUse(f"{revision!r} is no revision: write git:main or git:HEAD~1")
    folder = "." if config.output is None else str(config.output.resolve())
    listed = _git(
        config.root, "ls-tree", "-r", "-z", "--full-tree", revision, "--", _in_repository(config, folder)
    )
    names: list[tuple[str, str]] = []
    for line in listed.decode().split("\0"):
        meta, _, name = line.partition("\t")
        if name.endswith(".json"):
            names.append((meta.split(" ")[2], name))
    asked = "".join(f"{blob}\n" for blob, _ in names).encode()
    answer = _git(config.root, "cat-file", "--batch", given=asked)
    at = 0
    for _, name in names:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].split(b" ")[2])
        yield f"{_GIT}{revision}:{name}", answer[end + 1 : end + 1 + size]
        at = end + size + 2


def _in_repository(config: Config, folder: str) -> str:
    """The folder relative to the top of the repository."""
    top = Path(_git(config.root, "rev-parse", "--show-toplevel").decode().strip())
    return str((config.root / folder).resolve().relative_to(top.resolve()))


def _git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, input=given, capture_output=True, check=False)  # noqa: S607
    except OSError as error:
        raise WrongUse(f"git cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise WrongUse(f"git {arguments[0]}: {said[0] if said else 'failed'}")
    return done.stdout


def _of_server(url: str, ids: Iterable[str]) -> Iterator[Definition]:
    from orbit_sdk.cli.connection import connected
    from orbit_sdk.definition.models import load_definition

    with connected(url, None) as client:
        for id_ in sorted(set(ids)):
            for version in client.definitions.list(id_):
                yield load_definition(client.definitions.get(id_, version.version).definition)
