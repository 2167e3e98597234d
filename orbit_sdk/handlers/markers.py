"""Small types that parameters and results may use."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FileRef", "SecretRef", "Sensitive"]


class Sensitive:
    """`Annotated[str, Sensitive]`: the value is masked wherever it is shown."""


@dataclass(frozen=True, slots=True)
class SecretRef:
    """The *name* of a secret, such as `bank/api`; the worker resolves it, Orbit never stores the secret."""

    name: str


@dataclass(frozen=True, slots=True)
class FileRef:
    """Something large, kept elsewhere: only address and digest travel (`size` in bytes, `sha256` in hex)."""

    uri: str
    sha256: str
    size: int
    media_type: str
