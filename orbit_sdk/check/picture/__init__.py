"""A definition as a picture: an SVG with its own layout over the region tree, or Mermaid text.

Pictures are made of sound definitions only; the same definition always gives the same text.
"""

from orbit_sdk.check.picture.drawing import picture_svg
from orbit_sdk.check.picture.mermaid import picture_mermaid

__all__ = ["picture_mermaid", "picture_svg"]
