"""From the name of a secret to the secret, in the process that needs it. Orbit never sees the value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from orbit_sdk.errors import InvalidArgument, NotFound
from orbit_sdk.handlers.markers import SecretRef

__all__ = ["SecretEnvironment", "SecretFolder", "secret"]

FOLDER = "ORBIT_SECRETS"
"""The variable that names the folder of `secret`."""
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
_BYTES_MAX = 1024 * 1024


class SecretFolder:
    """One file per secret, as Kubernetes and systemd mount them: `bank/api` is `root/bank/api`.

    Read anew each time, so that a rotated secret is picked up. One line end at the end is left out.
    """

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)

    def get(self, ref: SecretRef) -> str:
        """Raises NotFound, with the name of the secret and of the folder; InvalidArgument for a bad name."""
        path = self._root / _checked(ref)
        try:
            with path.open("rb") as file:
                text = file.read(_BYTES_MAX).decode()
        except (OSError, UnicodeDecodeError):
            raise NotFound(f"the secret {ref.name} is no readable text file in {self._root}") from None
        return text.removesuffix("\n").removesuffix("\r")


class SecretEnvironment:
    """One variable per secret: `bank/api` is `ORBIT_SECRET_BANK_API`."""

    def __init__(self, environment: Mapping[str, str] | None = None, prefix: str = "ORBIT_SECRET_") -> None:
        self._environment = os.environ if environment is None else environment
        self._prefix = prefix

    def get(self, ref: SecretRef) -> str:
        """Raises NotFound with the names of secret and variable; InvalidArgument for a bad name."""
        variable = self._prefix + re.sub(r"[^A-Za-z0-9]", "_", _checked(ref)).upper()
        try:
            return self._environment[variable]
        except KeyError:
            raise NotFound(f"the secret {ref.name} is not set: {variable} is missing") from None


def secret(ref: SecretRef) -> str:
    """The secret as this process is told it: from the folder named by `ORBIT_SECRETS`, else from a variable.

    Raises NotFound with the name of what is missing.
    """
    folder = os.environ.get(FOLDER)
    return SecretFolder(folder).get(ref) if folder else SecretEnvironment().get(ref)


def _checked(ref: SecretRef) -> str:
    """Parameters come from outside: a name never leads out of the folder."""
    if not _NAME.fullmatch(ref.name):
        raise InvalidArgument.at("name", f"is {ref.name!r}; a secret's name is words joined by /: bank/api")
    return ref.name
