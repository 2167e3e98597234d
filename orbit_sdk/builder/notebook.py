"""How a workflow shows itself in a notebook: as its picture, or with what is wrong in it."""

from __future__ import annotations

from html import escape

from orbit_sdk.definition.models import Definition
from orbit_sdk.handlers.problems import BuildError

__all__ = ["problems_html", "svg_of"]


def svg_of(definition: Definition) -> str:
    """The picture of a definition."""
    from orbit_sdk.check.picture import picture_svg  # loaded only where somebody looks

    return picture_svg(definition)


def problems_html(error: BuildError) -> str:
    """What is wrong, line by line."""
    lines = "\n".join(escape(str(problem)) for problem in error.problems)
    return f"<pre>{lines}</pre>"
