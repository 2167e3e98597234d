"""Workflow instances: start, load, save, read."""
