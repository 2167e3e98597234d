"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from orbit_sdk.cli.findings import Finding, Spot, relative

__all__ = ["sarif"]

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_DOCUMENT: Final = 1
"""A place in a JSON document has no line; viewers want one."""


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """One run of one tool; `level` is `error` or `warning`."""
    rules = {found.code: found for found in sorted(findings, key=lambda one: one.code)}
    index = {code: number for number, code in enumerate(rules)}
    driver = {
        "name": "orbit check",
        "version": version("orbit-sdk"),
        "rules": [_rule(code, found) for code, found in rules.items()],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, index) for found in findings],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, found: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": code, "defaultConfiguration": {"level": found.severity}}
    if found.help:
        rule["help"] = {"text": found.help}
    return rule


def _result(found: Finding, index: Mapping[str, int]) -> dict[str, Any]:
    text = found.message if not found.help else f"{found.message}\n{found.help}"
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": index[found.code],
        "level": found.severity,
        "message": {"text": text},
    }
    places = _locations([found], found.path)
    if places:
        result["locations"] = places
    related = [place for spot in found.related for place in _locations([spot], spot.path, spot.note)]
    if related:
        result["relatedLocations"] = [{"id": number, **place} for number, place in enumerate(related)]
    return result


def _locations(spots: Iterable[Finding | Spot], path: str | None, note: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for spot in spots:
        place: dict[str, Any] = {}
        if spot.file is not None:
            region: dict[str, Any] = {"startLine": spot.line or _DOCUMENT}
            if spot.column is not None and spot.column >= 1:
                region["startColumn"] = spot.column
            artifact = {"uri": _uri(spot.file)}
            place["physicalLocation"] = {"artifactLocation": artifact, "region": region}
        if path not in (None, "$"):
            place["logicalLocations"] = [{"fullyQualifiedName": path, "kind": "member"}]
        if note:
            place["message"] = {"text": note}
        if place:
            found.append(place)
    return found


def _uri(file: str) -> str:
    """Relative to the working folder where possible, as code hosts want it."""
    name = relative(file)
    return Path(name).as_uri() if Path(name).is_absolute() else Path(name).as_posix().replace(" ", "%20")
