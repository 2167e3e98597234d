"""How Sphinx builds these pages: `make docs`."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

_project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]

project = "Orbit"
author = "The Orbit authors"
copyright = author
version = release = _project["version"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"Orbit {release}"


def setup(app: Sphinx) -> None:
    """Diagrams are shown as the text they are."""
    app.add_lexer("mermaid", TextLexer)
