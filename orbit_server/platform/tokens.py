"""Tokens: shown once, stored as a hash. `orbit_` and 64 hex digits, 256 random bits."""

from __future__ import annotations

import hashlib
import re

from orbit_server.clock import random_hex

__all__ = ["is_token", "new_token", "token_hash"]

_TOKEN = re.compile(r"orbit_[0-9a-f]{64}", re.ASCII)


def new_token() -> str:
    """A token that nobody has seen."""
    return f"orbit_{random_hex(64)}"


def is_token(text: str) -> bool:
    """Whether the text has the shape of a token."""
    return _TOKEN.fullmatch(text) is not None


def token_hash(token: str) -> str:
    """What is stored of a token. It has 256 random bits, so a plain hash cannot be searched."""
    return hashlib.sha256(token.encode()).hexdigest()
