"""The first schema."""

from __future__ import annotations

from orbit_server.storage.migrations.frozen import run_frozen

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_frozen("v0001_first")
