"""Claiming ready tasks for free worker slots."""
