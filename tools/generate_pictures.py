"""Generates the pictures of the documentation from the workflows of the examples."""

from __future__ import annotations

from pathlib import Path

from orbit_sdk.check.picture import picture_svg
from orbit_sdk.definition.models import read_definition

ROOT = Path(__file__).resolve().parent.parent
TARGET = "docs/pictures"
DOCUMENTS = ROOT / "schemas" / "examples" / "definition" / "valid"

SHOWN_STATES = {
    "validate": "COMPLETED",
    "review": "COMPLETED",
    "review_result": "COMPLETED",
    "if_approved": "COMPLETED",
    "prepare": "COMPLETED",
    "submit": "NEEDS_REVIEW",
}
"""A moment of the demo: the outcome of the submission is unknown, and a person is asked."""


def outputs() -> dict[str, str]:
    """Path -> text of every generated file."""
    from examples.external_job.flow import external_job

    demo = external_job.compile().definition
    arms = read_definition((DOCUMENTS / "parallel_join.json").read_bytes())
    return {
        f"{TARGET}/external_job.svg": picture_svg(demo),
        f"{TARGET}/external_job_in_review.svg": picture_svg(demo, SHOWN_STATES),
        f"{TARGET}/parallel.svg": picture_svg(arms),
    }
