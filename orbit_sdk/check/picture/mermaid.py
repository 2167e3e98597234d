"""A definition as Mermaid text, for places that draw it themselves (GitHub, GitLab, many editors)."""

from __future__ import annotations

from collections.abc import Iterator

from orbit_sdk.check.checking import sound_view
from orbit_sdk.check.picture.shapes import Way
from orbit_sdk.check.picture.texts import detail_of, exit_text, way_of
from orbit_sdk.check.regions import Region
from orbit_sdk.check.view import View
from orbit_sdk.definition.models import Definition

_SHAPES = {
    "BRANCH": ('{{"', '"}}'),
    "END": ('(["', '"])'),
    "PARALLEL": ('[["', '"]]'),
    "JOIN": ('[["', '"]]'),
    "MERGE": ('("', '")'),
}
_ARROWS = {Way.CATCH: "-.->", Way.LATE: "-.->", Way.ARM: "==>", Way.CASE: "-->", Way.NEXT: "-->"}


def picture_mermaid(definition: Definition) -> str:
    """The flow chart of a sound definition; InvalidArgument with its faults otherwise."""
    view = sound_view(definition)
    lines = ["flowchart TD", *_region(view, (), 1)]
    lines += [f"  {_edge(view, number)}" for number in range(len(view.graph.edges))]
    return "\n".join(lines) + "\n"


def _region(view: View, region: Region, depth: int) -> Iterator[str]:
    lead = "  " * depth
    for key, node in view.nodes.items():
        if view.regions.of[key] != region:
            continue
        detail = detail_of(node)
        opening, closing = _SHAPES.get(node.kind, ('["', '"]'))
        text = f"<b>{key}</b>" + (f"<br/>{_safe(detail)}" if detail else "")
        yield f"{lead}n_{key}{opening}{text}{closing}"
        for arm in sorted(view.parallels[key].arms) if key in view.parallels else ():
            yield f'{lead}subgraph arm_{key}_{arm}["{arm}"]'
            yield from _region(view, (*region, (key, arm)), depth + 1)
            yield f"{lead}end"


def _edge(view: View, number: int) -> str:
    edge = view.graph.edges[number]
    way = Way.ARM if edge.arm is not None else way_of(edge.exit)
    text = exit_text(view.nodes[edge.source], edge.exit)
    label = f'|"{_safe(text)}"|' if text else ""
    return f"n_{edge.source} {_ARROWS[way]}{label} n_{edge.target}"


def _safe(text: str) -> str:
    """Mermaid's own entities for what would end a text."""
    for letter, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("\n", " ")):
        text = text.replace(letter, entity)
    return text
