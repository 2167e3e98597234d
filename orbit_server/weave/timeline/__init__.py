"""The event timeline of a workflow."""
