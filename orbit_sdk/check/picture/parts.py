"""The picture put together from the inside out: each arm by itself, then arms side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orbit_sdk.check.graph import Edge
from orbit_sdk.check.picture.cards import Card, card_of
from orbit_sdk.check.picture.placing import arrange
from orbit_sdk.check.picture.shapes import Item, Label, Line, Point, Way, Wire
from orbit_sdk.check.picture.texts import LONGEST_LABEL, exit_text, shortened, way_of
from orbit_sdk.check.regions import Region
from orbit_sdk.check.view import View

ARM_GAP = 20.0
ARM_PADDING = 16.0
ARM_HEAD = 20.0
FORK_GAP = 30.0
NAME_CHAR = 6.8
HEAD, FOOT = "<head>", "<foot>"


@dataclass(frozen=True, slots=True)
class Frame:
    """The border around an arm."""

    name: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Part:
    """A finished piece of the picture, relative to its own top left corner.

    `head` and `foot` are where the line into an arm begins and where those out of it come together.
    """

    width: float
    height: float
    cards: tuple[tuple[Card, Point], ...] = ()
    frames: tuple[Frame, ...] = ()
    lines: tuple[Line, ...] = ()
    labels: tuple[Label, ...] = ()
    head: Point = (0.0, 0.0)
    foot: Point = (0.0, 0.0)

    def moved(self, x: float, y: float) -> Part:
        """The same with its corner at a point."""
        return Part(
            self.width,
            self.height,
            tuple((card, (left + x, top + y)) for card, (left, top) in self.cards),
            tuple(Frame(f.name, f.x + x, f.y + y, f.width, f.height) for f in self.frames),
            tuple(
                Line(line.way, tuple((px + x, py + y) for px, py in line.points), line.arrow)
                for line in self.lines
            ),
            tuple(Label(each.way, each.text, each.hint, each.x + x, each.y + y) for each in self.labels),
            (self.head[0] + x, self.head[1] + y),
            (self.foot[0] + x, self.foot[1] + y),
        )


class Composer:
    """Composes the parts of one sound definition."""

    def __init__(self, view: View, states: Mapping[str, str]) -> None:
        self._view = view
        self._states = states
        self._members: dict[Region, list[str]] = {}
        for key in view.graph.order:
            self._members.setdefault(view.regions.of[key], []).append(key)

    def whole(self) -> Part:
        """The whole definition."""
        return self._region((), None)

    def _region(self, region: Region, foot: str | None) -> Part:
        """The steps of one region; the JOIN `foot` stands for everything that leaves an arm."""
        graph, kinds = self._view.graph, self._view.graph.kinds
        parts: dict[str, Part] = {}
        items: list[Item] = []
        wires: list[Wire] = []
        if foot is not None:
            parallel, arm = region[-1]
            items += [Item(HEAD, 0, 0, 0), Item(FOOT, 0, 0, 0)]
            wires.append(Wire(HEAD, self._view.parallels[parallel].arms[arm], Way.ARM))
        for key in self._members[region]:
            if kinds[key] != "JOIN":
                parts[key], item = self._item(key)
                items.append(item)
            wires += [self._wire(edge, foot) for edge in graph.outgoing[key] if edge.arm is None]
        return _put_together(items, wires, parts)

    def _item(self, key: str) -> tuple[Part, Item]:
        if key in self._view.parallels:
            return self._fork(key)
        card = self._card(key)
        return Part(card.width, card.height, ((card, (0.0, 0.0)),)), card.item

    def _card(self, key: str) -> Card:
        return card_of(key, self._view.nodes[key], self._states.get(key, ""))

    def _wire(self, edge: Edge, foot: str | None) -> Wire:
        graph = self._view.graph
        source = graph.parallels[edge.source][0] if graph.kinds[edge.source] == "JOIN" else edge.source
        text = exit_text(self._view.nodes[edge.source], edge.exit)
        target = FOOT if edge.target == foot else edge.target
        return Wire(source, target, way_of(edge.exit), shortened(text, LONGEST_LABEL), text)

    def _fork(self, key: str) -> tuple[Part, Item]:
        node = self._view.parallels[key]
        region = self._view.regions.of[key]
        arms = [(name, self._region((*region, (key, name)), node.join)) for name in sorted(node.arms)]
        opening, closing = self._card(key), self._card(node.join)
        lefts = [max(ARM_PADDING, len(name) * NAME_CHAR + 22 - part.head[0]) for name, part in arms]
        sizes = [left + part.width + ARM_PADDING for left, (_, part) in zip(lefts, arms, strict=True)]
        inner = sum(sizes) + ARM_GAP * (len(sizes) - 1)
        width = max(inner, opening.width, closing.width)
        top = opening.height + FORK_GAP
        tall = max(part.height for _, part in arms) + ARM_HEAD + ARM_PADDING
        bottom = top + tall + FORK_GAP
        middle, x = width / 2, (width - inner) / 2
        ends = ((opening, (middle - opening.width / 2, 0.0)), (closing, (middle - closing.width / 2, bottom)))
        built = Part(0, 0, ends)
        for (name, part), left, size in zip(arms, lefts, sizes, strict=True):
            frame = Frame(name, x, top, size, tall)
            placed = part.moved(x + left, top + ARM_HEAD)
            lines = _around(placed, frame, (middle, opening.height), (middle, bottom))
            built = _joined(built, placed, (frame,), lines)
            x += size + ARM_GAP
        whole = Part(width, bottom + closing.height, built.cards, built.frames, built.lines, built.labels)
        return whole, Item(key, whole.width, whole.height, min(opening.width, closing.width) * 0.6)


def _around(arm: Part, frame: Frame, fork: Point, join: Point) -> tuple[Line, ...]:
    """The lines between an arm and its PARALLEL and JOIN."""
    enters, leaves = (arm.head[0], frame.y), (arm.foot[0], frame.y + frame.height)
    return (
        Line(Way.ARM, (fork, fork, enters), arrow=False),
        Line(Way.ARM, (enters, enters, arm.head), arrow=False),
        Line(Way.ARM, (arm.foot, leaves, join), arrow=True),
    )


def _joined(first: Part, second: Part, frames: tuple[Frame, ...], lines: tuple[Line, ...]) -> Part:
    return Part(
        0,
        0,
        first.cards + second.cards,
        first.frames + frames + second.frames,
        first.lines + second.lines + lines,
        first.labels + second.labels,
    )


def _put_together(items: list[Item], wires: list[Wire], parts: Mapping[str, Part]) -> Part:
    laid = arrange(items, wires, FOOT)
    head, foot = (laid.places.get(end, (0.0, 0.0)) for end in (HEAD, FOOT))
    whole = Part(laid.width, laid.height, (), (), laid.lines, laid.labels, head, foot)
    for key, (x, y) in laid.places.items():
        if key in parts:
            placed = parts[key].moved(x, y)
            whole = Part(
                whole.width,
                whole.height,
                whole.cards + placed.cards,
                whole.frames + placed.frames,
                whole.lines + placed.lines,
                whole.labels + placed.labels,
                head,
                foot,
            )
    return whole
