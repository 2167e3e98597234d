"""Looking at a workflow function before it runs, for what references cannot notice by themselves."""

from orbit_sdk.builder.scan.references import Words
from orbit_sdk.builder.scan.scanning import scan

__all__ = ["Words", "scan"]
