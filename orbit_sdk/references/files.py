"""Files in a folder, each under the digest of its content: the plainest store for `FileRef`."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO

from orbit_sdk.errors import InvalidArgument, NotFound, Unavailable
from orbit_sdk.handlers.markers import FileRef

__all__ = ["FolderFiles"]

_SCHEME = "folder:"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PIECE = 1024 * 1024


class FolderFiles:
    """`root` is a folder that everybody who puts or reads sees, on one machine or on a network share.

    A file is stored once, whoever puts it and how often: an attempt that is repeated does no harm. Nothing is
    ever deleted here; what is no longer needed is for the folder's owner to clear away.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def put(
        self, source: bytes | Path | BinaryIO, *, media_type: str = "application/octet-stream"
    ) -> FileRef:
        """Store the bytes, the file at a path, or what is left to read of an open file. Durable on return."""
        (self._root / "new").mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._root / "new", delete=False) as made:
            temporary = Path(made.name)
            try:
                sha256, size = _copy(source, made)
                made.flush()
                os.fsync(made.fileno())
                self._keep(temporary, sha256)
            finally:
                with suppress(FileNotFoundError):
                    temporary.unlink()
        return FileRef(uri=f"{_SCHEME}{sha256}", sha256=sha256, size=size, media_type=media_type)

    def _keep(self, temporary: Path, sha256: str) -> None:
        place = self._place(sha256)
        place.parent.mkdir(exist_ok=True)
        temporary.replace(place)
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def read(self, ref: FileRef) -> bytes:
        """All of it. Raises as `path` does."""
        return self.path(ref).read_bytes()

    def open(self, ref: FileRef) -> BinaryIO:
        """The file, open for reading. Raises as `path` does."""
        return self.path(ref).open("rb")

    def path(self, ref: FileRef) -> Path:
        """Where it is, once size and digest are compared. Treat it as read-only.

        Raises:
            InvalidArgument: the reference is of another kind of store.
            NotFound: this folder does not hold the file.
            Unavailable: what is there is not what was put.
        """
        if not _DIGEST.fullmatch(ref.sha256) or ref.uri != f"{_SCHEME}{ref.sha256}":
            raise InvalidArgument.at("uri", f"is {ref.uri!r}; this store has files of {_SCHEME}<sha256>")
        place = self._place(ref.sha256)
        try:
            size = place.stat().st_size
            sha256 = _digest_of(place) if size == ref.size else ""
        except FileNotFoundError:
            raise NotFound(f"the file {ref.sha256} is not in {self._root}") from None
        if sha256 != ref.sha256:
            raise Unavailable(f"the file {ref.sha256} in {self._root} is damaged")
        return place

    def _place(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256


def _copy(source: bytes | Path | BinaryIO, sink: IO[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(source):
        digest.update(piece)
        size += len(piece)
        sink.write(piece)
    return digest.hexdigest(), size


def _pieces(source: bytes | Path | BinaryIO) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, Path):
        with source.open("rb") as file:
            yield from _pieces(file)
    else:
        while piece := source.read(_PIECE):
            yield piece


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
