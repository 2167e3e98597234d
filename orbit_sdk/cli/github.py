"""Findings as workflow commands of GitHub Actions: annotations on the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orbit_sdk.cli.findings import Finding, relative

__all__ = ["github_lines"]


def github_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """One line per finding: `::error file=app.py,line=3,col=5,title=CODE::message`."""
    for found in findings:
        values: dict[str, str] = {}
        if found.file is not None:
            values["file"] = relative(found.file)
        for name, number in (("line", found.line), ("col", found.column)):
            if number is not None:
                values[name] = str(number)
        values["title"] = found.code
        shown = ",".join(f"{name}={_property(value)}" for name, value in values.items())
        place = f" ({found.path})" if found.line is None and found.path not in (None, "$") else ""
        text = f"{found.message}{place}" + (f"\n{found.help}" if found.help else "")
        yield f"::{found.severity} {shown}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
