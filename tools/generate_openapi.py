"""The HTTP interface as files: `schemas/openapi.v1.json`, and the list of routes for the documentation."""

from __future__ import annotations

import json

from orbit_server.api.openapi import openapi_document
from orbit_server.api.table import ROUTES

_HEAD = """# Routes

<!-- Do not edit: written by tools/generate_openapi.py from the route table. -->

*Key* says whether the header `Idempotency-Key` is needed; in a batch each item carries its own.

| route | permission | key | what it does |
| --- | --- | --- | --- |
"""


def outputs() -> dict[str, str]:
    """Both files by their paths from the root."""
    text = json.dumps(openapi_document(ROUTES), indent=2, ensure_ascii=False)
    return {"schemas/openapi.v1.json": text + "\n", "docs/reference/http-routes.md": _routes()}


def _routes() -> str:
    rows = []
    for route in ROUTES:
        permission = f"`{route.permission}`" if route.permission else "none"
        if route.instead is not None:
            permission += f" or `{route.instead}`"
        key = "per item" if route.item is not None else "yes" if route.idempotency == "required" else ""
        rows.append(f"| `{route.method} {route.path}` | {permission} | {key} | {route.summary} |\n")
    return _HEAD + "".join(rows)
