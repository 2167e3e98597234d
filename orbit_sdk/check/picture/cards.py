"""The boxes of a picture: one per step, as large as its text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orbit_sdk.check.picture.shapes import Item
from orbit_sdk.check.picture.texts import LONGEST_DETAIL, detail_of, hint_of, shortened
from orbit_sdk.definition.nodes import FailNode, Node

KEY_CHAR = 7.9
SMALL_CHAR = 6.7
KIND_CHAR = 6.9
PADDING = 14.0


class Outline(StrEnum):
    """BOX for steps that do something, ROUND for ENDs, SLIM for what only holds the graph together."""

    BOX = "box"
    ROUND = "round"
    SLIM = "slim"


@dataclass(frozen=True, slots=True)
class Card:
    """A step as drawn. `state` is empty unless an instance is shown."""

    key: str
    kind: str
    tone: str
    outline: Outline
    detail: str
    hint: str
    state: str
    width: float
    height: float

    @property
    def item(self) -> Item:
        return Item(self.key, self.width, self.height, self.width * 0.6)


def card_of(key: str, node: Node, state: str) -> Card:
    """The card of a step."""
    detail = shortened(detail_of(node), LONGEST_DETAIL)
    hint = hint_of(key, node) + (f"\n{state}" if state else "")
    tone = "fail" if isinstance(node, FailNode) else node.kind.lower()
    if node.kind in ("PARALLEL", "JOIN", "MERGE"):
        width = len(key) * SMALL_CHAR + (len(node.kind) + 1) * KIND_CHAR + 2 * PADDING
        width += (len(state) + 2) * KIND_CHAR if state else 0
        return Card(key, node.kind, tone, Outline.SLIM, "", hint, state, width, 26.0)
    head = (len(node.kind) + (len(state) + 3 if state else 0)) * KIND_CHAR
    width = max(96.0, head + 2 * PADDING, len(key) * KEY_CHAR + 2 * PADDING)
    width = max(width, len(detail) * SMALL_CHAR + 2 * PADDING)
    outline = Outline.ROUND if node.kind == "END" else Outline.BOX
    if outline is Outline.ROUND:
        width += 12
    return Card(key, node.kind, tone, outline, detail, hint, state, width, 58.0 if detail else 42.0)
