"""What changes between two versions of a workflow, whom it affects, and how much care it needs."""

from orbit_sdk.check.diff.change import Change, Party, Verdict, worst
from orbit_sdk.check.diff.compare import compare
from orbit_sdk.check.diff.table import markdown_table

__all__ = ["Change", "Party", "Verdict", "compare", "markdown_table", "worst"]
