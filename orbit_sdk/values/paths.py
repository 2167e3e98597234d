"""How a place inside a JSON document is written: `nodes.submit.cases[0]`, `handlers["job.submit@1"]`.

The document itself is `$`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["PathPart", "field_path"]

PathPart: TypeAlias = str | int

_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def field_path(parts: Iterable[PathPart]) -> str:
    """The text of a path; keys that are not plain words are quoted."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text or "$"
