"""Checks of a definition before it runs: references, graph, structure, data flow, types, limits.

`check_definition` gives every finding at once, as frozen diagnostics. It reads the definition alone: no
server, no clock, no network.
"""

from orbit_sdk.check.checking import check_definition, errors_of, refusal, sound_view
from orbit_sdk.check.diagnostics import Diagnostic, Place, Related, Severity, SideTable
from orbit_sdk.check.documents import CheckedDocument, check_document, check_version

__all__ = [
    "CheckedDocument",
    "Diagnostic",
    "Place",
    "Related",
    "Severity",
    "SideTable",
    "check_definition",
    "check_document",
    "check_version",
    "errors_of",
    "refusal",
    "sound_view",
]
