"""Pictures: everything is drawn, nothing lies on top of something else, and the text is always the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings

from orbit_sdk.check import sound_view
from orbit_sdk.check.picture import picture_mermaid, picture_svg
from orbit_sdk.check.picture.layers import LABEL_HEIGHT
from orbit_sdk.check.picture.parts import Composer, Part
from orbit_sdk.definition.models import Definition, load_definition, read_definition
from orbit_sdk.errors import InvalidArgument
from tests.property.strategies import documents, random_document
from tests.unit.check.documents import definition, end, fail, join, parallel, task, timer, wait

EXAMPLES = Path(__file__).parents[3] / "schemas" / "examples" / "definition" / "valid"
SVG = "{http://www.w3.org/2000/svg}"

Box = tuple[float, float, float, float]


def boxes(part: Part) -> list[Box]:
    """Cards and texts as left, top, right, bottom."""
    found = [(x, y, x + card.width, y + card.height) for card, (x, y) in part.cards]
    for label in part.labels:
        half = len(label.text) * 6.3 / 2
        found.append((label.x - half, label.y, label.x + half, label.y + LABEL_HEIGHT))
    return found


def overlap(first: Box, second: Box) -> bool:
    left, top, right, bottom = first
    return left < second[2] and second[0] < right and top < second[3] and second[1] < bottom


def verticals(part: Part) -> list[Box]:
    """The straight pieces of wires, as thin boxes."""
    found = []
    for line in part.lines:
        (x, top), (_, bend), _ = line.points
        if bend > top + 1:
            found.append((x - 0.1, top + 0.5, x + 0.1, bend - 0.5))
    return found


def judge(made: Definition) -> None:
    part = Composer(sound_view(made), {}).whole()
    assert sorted(card.key for card, _ in part.cards) == sorted(made.nodes)
    drawn = boxes(part)
    for index, box in enumerate(drawn):
        assert box[0] >= -0.01
        assert box[2] <= part.width + 0.01
        assert box[3] <= part.height + 0.01
        assert not any(overlap(box, other) for other in drawn[index + 1 :])
        assert not any(overlap(box, line) for line in verticals(part))
    for frame in part.frames:
        inside = (frame.x, frame.y, frame.x + frame.width, frame.y + frame.height)
        for other in part.frames:
            border = (other.x, other.y, other.x + other.width, other.y + other.height)
            nested = _within(inside, border) or _within(border, inside)
            assert nested or not overlap(inside, border)


def _within(inner: Box, outer: Box) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


@settings(max_examples=60)
@given(documents(30, 4))
def test_nothing_lies_on_top_of_something_else(document: dict[str, Any]) -> None:
    judge(load_definition(document))


def test_two_hundred_steps_are_drawn_as_carefully_as_five() -> None:
    found = (random_document(Random(seed), 600, 5) for seed in range(1000))
    document = next(each for each in found if 150 <= len(each["nodes"]) <= 256)
    judge(load_definition(document))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_becomes_a_picture_that_stands_alone(path: Path) -> None:
    made = read_definition(path.read_bytes())
    text = picture_svg(made)
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    keys = {each.text for each in root.iter(f"{SVG}text") if each.get("class") == "key"}
    small = {each.text for each in root.iter(f"{SVG}tspan") if each.get("class") == "detail"}
    assert keys | small == set(made.nodes)
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert picture_svg(read_definition(path.read_bytes())) == text


NODES = {
    "p": parallel("j", left="a", right="w"),
    "a": task("j", on_failure={"next": "f"}),
    "f": fail(),
    "w": wait("j", on_timeout={"next": "t"}),
    "t": timer("j"),
    "j": join("e"),
    "e": end(),
}


def test_every_kind_of_way_looks_different_in_light_and_in_dark() -> None:
    text = picture_svg(definition(NODES))
    for way in ("next", "arm", "catch", "late"):
        assert f'class="line way-{way}"' in text
    styles = re.findall(r"\.line\.way-(\w+)\{([^}]+)\}", text)
    assert len({style for _, style in styles}) == len(styles) == 3
    assert "@media(prefers-color-scheme:dark)" in text


def test_an_instance_colours_its_steps_and_fades_the_rest() -> None:
    states = {"p": "COMPLETED", "a": "NEEDS_REVIEW", "w": "WAITING_SIGNAL", "f": "SKIPPED"}
    root = ET.fromstring(picture_svg(definition(NODES), states))
    found = {
        (group.findtext(f"{SVG}title") or "").split("\n")[0].split(" ")[1]: group.get("class", "").split(" ")[
            -1
        ]
        for group in root.iter(f"{SVG}g")
    }
    assert found == {
        "p": "is-good",
        "a": "is-ask",
        "w": "is-run",
        "f": "is-unreached",
        "t": "is-unreached",
        "j": "is-unreached",
        "e": "is-unreached",
    }


def test_texts_of_authors_cannot_break_out_of_the_picture() -> None:
    nodes = {"a": task("e", title='<script>"&'), "e": end()}
    made = definition(nodes)
    assert "<script>" not in picture_svg(made)
    ET.fromstring(picture_svg(made))
    assert "#lt;script#gt;#quot;" in picture_mermaid(made)


def test_mermaid_nests_the_arms() -> None:
    text = picture_mermaid(definition(NODES))
    assert text.splitlines()[0] == "flowchart TD"
    assert 'subgraph arm_p_left["left"]' in text
    assert "n_p ==> n_a" in text
    assert 'n_a -.->|"failed"| n_f' in text
    assert 'n_w -.->|"after 1 h"| n_t' in text
    assert text.count("subgraph") == text.count("\n  end") + text.count("\n    end")


def test_a_graph_that_does_not_nest_is_refused_with_its_faults() -> None:
    with pytest.raises(InvalidArgument, match="GRAPH_CYCLE"):
        picture_svg(definition({"a": timer("b"), "b": timer("a"), "e": end()}))


def test_a_picture_does_not_need_sound_types() -> None:
    document = json.loads((EXAMPLES / "task.json").read_text("utf-8"))
    document["output"] = {"const": "never"}
    assert picture_svg(load_definition(document))
