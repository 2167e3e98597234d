"""The `orbit` command."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process, and leave with its exit code."""
    from orbit_sdk.cli.app import app

    app(prog_name="orbit")
