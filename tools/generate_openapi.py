"""The HTTP interface as a file: `schemas/openapi.v1.json`."""

from __future__ import annotations

import json

from orbit_server.api.openapi import openapi_document
from orbit_server.api.table import ROUTES


def outputs() -> dict[str, str]:
    """The document by its path from the root."""
    text = json.dumps(openapi_document(ROUTES), indent=2, ensure_ascii=False)
    return {"schemas/openapi.v1.json": text + "\n"}
