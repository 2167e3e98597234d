"""In a notebook a workflow shows its picture, and a wrong one what is wrong."""

import xml.etree.ElementTree as ET
from typing import Any

import orbit_sdk as orbit
from tests.unit.builder.shop import Order, Result, work


@orbit.workflow("shop.shown", version=1)
def shown(order: Order) -> Result:
    return work(order.order_id)


@orbit.workflow("shop.wrong", version=1)
def wrong(order: Order) -> Any:
    return len(order.tags) and order.order_id


def test_a_workflow_and_its_definition_show_a_picture() -> None:
    svg = shown._repr_svg_()
    assert svg is not None
    assert ET.fromstring(svg).tag.endswith("svg")
    assert shown.compile()._repr_svg_() == svg
    assert shown._repr_html_() is None


def test_a_wrong_workflow_shows_its_misuses() -> None:
    assert wrong._repr_svg_() is None
    html = wrong._repr_html_()
    assert html is not None
    assert "COMPUTE" in html
    assert "&lt;ref input.tags" in html
