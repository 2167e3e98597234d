"""Ids: 32 lower-case hex digits, either derived from what they name or minted from a seed.

A seed is made once at an edge (it holds the time and the randomness); everything made from it
is the same on every rerun of a transaction.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Id", "IdSeed", "derive_id", "is_id"]

Id: TypeAlias = str

_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)


def is_id(text: str) -> bool:
    """True for 32 lower-case hex digits."""
    return _ID.fullmatch(text) is not None


def derive_id(*parts: str) -> Id:
    """The id that these parts always have; the parts are kept apart, so ("ab", "c") != ("a", "bc")."""
    data = [part.encode() for part in parts]
    sized = b"".join([piece for part in data for piece in (len(part).to_bytes(8, "big"), part)])
    return hashlib.sha256(sized).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class IdSeed:
    """Makes ids in the layout of UUIDv7: they sort by milliseconds, then by `n` (up to 4,095), and the n-th
    is always the same.
    """

    time_us: int
    entropy: str

    def nth(self, n: int) -> Id:
        """The n-th id of this seed (n >= 0)."""
        digest = hashlib.sha256(f"{self.time_us}:{n}:{self.entropy}".encode()).digest()
        tail = int.from_bytes(digest[:8], "big")
        millis = (self.time_us // 1000) & 0xFFFF_FFFF_FFFF
        rand_a = min(n, 0xFFF)
        rand_b = tail & 0x3FFF_FFFF_FFFF_FFFF
        value = (millis << 80) | (0x7 << 76) | (rand_a << 64) | (0b10 << 62) | rand_b
        return f"{value:032x}"
