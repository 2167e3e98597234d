"""`orbit schedule …`: plans and what came of them."""

from __future__ import annotations

from orbit_sdk.cli.command import group
from orbit_sdk.cli.schedule_preview import schedule_preview

__all__ = ["schedule"]

schedule = group("Plans that start tasks and workflows by the clock.", schedule_preview)
