"""The `orbit` command."""
