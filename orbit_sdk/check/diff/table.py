"""All changes of all workflows as one Markdown table, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbit_sdk.check.diff.change import Change, Verdict

_SIGNS = {Verdict.BREAKING: "🔴 breaking", Verdict.CAREFUL: "🟡 careful", Verdict.SAFE: "🟢 safe"}


def markdown_table(rows: Iterable[tuple[str, Sequence[Change]]]) -> str:
    """`rows` is a workflow's name and its changes; the worst stand first within each workflow."""
    order = list(Verdict)
    lines = ["| Workflow | Change | Affects | Verdict |", "| --- | --- | --- | --- |"]
    for name, changes in rows:
        for each in sorted(changes, key=lambda one: order.index(one.verdict)):
            cells = (f"`{name}`", each.what, each.affects.value, _SIGNS[each.verdict])
            lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
