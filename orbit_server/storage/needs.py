"""What a command needs: the rows it wants touched and loaded, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from orbit_sdk.values.ids import Id

Needs: TypeAlias = Mapping[str, Iterable[Id]]
"""Kind name -> ids. For a kind of members the ids are those of the owners."""

NOTHING: Needs = {}
