"""The profile that `orbit dev` leaves beside its data: where the server of this folder is, and its token.

It is found by itself from the folder upwards, and readable by its owner only.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["FOLDER", "Profile", "find_profile", "read_profile", "write_profile"]

FOLDER = ".orbit"
_FILE = "profile.json"


@dataclass(frozen=True, slots=True)
class Profile:
    """`audit`: the token may read the audit timeline."""

    url: str
    token: str
    audit: bool = False


def find_profile(start: Path | None = None) -> tuple[Profile, Path] | None:
    """The profile of the nearest folder upwards from `start` (the working folder), with its folder."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        found = read_profile(folder / FOLDER)
        if found is not None:
            return found, folder
    return None


def read_profile(data_folder: Path) -> Profile | None:
    """The profile in a data folder; None when there is none that can be read."""
    try:
        found = json.loads((data_folder / _FILE).read_text(encoding="utf-8"))
        return Profile(str(found["url"]), str(found["token"]), bool(found.get("audit", False)))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_profile(data_folder: Path, profile: Profile) -> None:
    """Write it so that nobody else can read it, and nobody ever reads half of it."""
    path = data_folder / _FILE
    fresh = path.with_suffix(f".{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(profile), file, indent=2)
    fresh.replace(path)
