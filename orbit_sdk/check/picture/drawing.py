"""The SVG text of a composed picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from orbit_sdk.check.checking import sound_view
from orbit_sdk.check.picture.cards import PADDING, Card, Outline
from orbit_sdk.check.picture.parts import Composer, Frame, Part
from orbit_sdk.check.picture.shapes import Label, Line, Point
from orbit_sdk.check.picture.style import style_sheet
from orbit_sdk.definition.models import Definition

CLASS = "orbit-picture"
NAMESPACE = "http://www.w3.org/2000/svg"
MARGIN = 16.0
ARROW = 6.0

_STATES = {
    "COMPLETED": "good",
    "SUCCEEDED": "good",
    "FAILED": "bad",
    "NEEDS_REVIEW": "ask",
    "PENDING": "run",
    "WAITING_TASK": "run",
    "WAITING_SIGNAL": "run",
    "WAITING_TIME": "run",
}


def picture_svg(definition: Definition, states: Mapping[str, str] | None = None) -> str:
    """A definition as an SVG document that stands alone, for light and dark surroundings.

    Args:
        definition: its references, graph and nesting must be sound (else InvalidArgument names the faults).
        states: the states of the steps of an instance by step key; steps that are not in it are shown as
            not reached. None shows no instance.
    """
    composer = Composer(sound_view(definition), states or {})
    part = composer.whole().moved(MARGIN, MARGIN)
    width, height = part.width + 2 * MARGIN, part.height + 2 * MARGIN
    said = escape(f"{definition.id} version {definition.version}")
    size = f'width="{_n(width)}" height="{_n(height)}"'
    box = f'viewBox="0 0 {_n(width)} {_n(height)}"'
    lines = [
        f'<svg xmlns="{NAMESPACE}" class="{CLASS}" {size} {box} role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f"<style>\n{style_sheet(CLASS)}\n</style>",
        f'<rect class="paper" width="{_n(width)}" height="{_n(height)}" rx="8"/>',
        *_content(part, shows_states=states is not None),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _content(part: Part, *, shows_states: bool) -> Iterator[str]:
    for frame in sorted(part.frames, key=lambda each: -each.width * each.height):
        yield from _frame(frame)
    for line in part.lines:
        yield from _line(line)
    for label in part.labels:
        yield _label(label)
    for card, corner in part.cards:
        yield from _card(card, corner, shows_states=shows_states)


def _frame(frame: Frame) -> Iterator[str]:
    yield (
        f'<rect class="frame" x="{_n(frame.x)}" y="{_n(frame.y)}" width="{_n(frame.width)}" '
        f'height="{_n(frame.height)}" rx="8"/>'
    )
    yield f'<text class="frame-name" x="{_n(frame.x + 8)}" y="{_n(frame.y + 14)}">{escape(frame.name)}</text>'


def _line(line: Line) -> Iterator[str]:
    (start, top), (_, bend), (end, low) = line.points
    tip = low - ARROW if line.arrow else low
    middle = (bend + tip) / 2
    turn = f"C{_n(start)} {_n(middle)} {_n(end)} {_n(middle)} {_n(end)} {_n(tip)}"
    down = f"V{_n(bend)}" if bend > top else ""
    path = f"M{_n(start)} {_n(top)}{down}" + (turn if start != end else f"V{_n(tip)}")
    yield f'<path class="line way-{line.way}" d="{path}"/>'
    if line.arrow:
        yield (f'<path class="head way-{line.way}" d="M{_n(end)} {_n(low)}l-4 {_n(-ARROW - 1)}h8z"/>')


def _label(label: Label) -> str:
    hint = f"<title>{escape(label.hint)}</title>" if label.hint != label.text else ""
    return (
        f'<text class="label way-{label.way}" x="{_n(label.x)}" y="{_n(label.y + 13)}" '
        f'text-anchor="middle">{hint}{escape(label.text)}</text>'
    )


def _card(card: Card, corner: Point, *, shows_states: bool) -> Iterator[str]:
    state = _STATES.get(card.state, "") if card.state not in ("", "SKIPPED", "STOPPED") else ""
    mark = f" is-{state}" if state else " is-unreached" if shows_states else ""
    x, y = corner
    yield f'<g class="step tone-{card.tone}{mark}" transform="translate({_n(x)} {_n(y)})">'
    yield f"<title>{escape(card.hint)}</title>"
    radius = {Outline.BOX: 6.0, Outline.ROUND: card.height / 2, Outline.SLIM: 13.0}[card.outline]
    yield f'<rect class="box" width="{_n(card.width)}" height="{_n(card.height)}" rx="{_n(radius)}"/>'
    if card.outline is Outline.SLIM:
        yield from _slim(card)
    else:
        yield from _full(card)
    yield "</g>"


def _slim(card: Card) -> Iterator[str]:
    state = f'<tspan class="state" dx="6">{card.state}</tspan>' if card.state else ""
    yield (
        f'<text x="{_n(card.width / 2)}" y="17" text-anchor="middle"><tspan class="kind">{card.kind}</tspan>'
        f'<tspan class="detail" dx="6">{escape(card.key)}</tspan>{state}</text>'
    )


def _full(card: Card) -> Iterator[str]:
    inset = PADDING + (6 if card.outline is Outline.ROUND else 0)
    if card.outline is Outline.BOX:
        side = f"v{_n(card.height - 12)}a6 6 0 0 0 6 6h-1.5v{_n(-card.height)}z"
        yield f'<path class="stripe" d="M6 0a6 6 0 0 0-6 6{side}"/>'
    yield f'<text class="kind" x="{_n(inset)}" y="16">{card.kind}</text>'
    if card.state:
        yield f'<text class="state" x="{_n(card.width - inset)}" y="16" text-anchor="end">{card.state}</text>'
    yield f'<text class="key" x="{_n(inset)}" y="32">{escape(card.key)}</text>'
    if card.detail:
        yield f'<text class="detail" x="{_n(inset)}" y="48">{escape(card.detail)}</text>'


def _n(value: float) -> str:
    """A number with one digit after the point, and none where it says nothing."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"
